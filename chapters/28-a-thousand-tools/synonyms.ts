// synonyms.ts: words that people use for one another when they speak of software. General ones: none
// names a tool. Two words are a phrase, which finds the other words of its group. Where a word means
// several things it is in several groups: a group is one meaning.

export const GROUPS: readonly string[] = `
# What is done with things
delete|remove|drop|erase|destroy|discard|clear|purge|clean|wipe|trash|tear down|throw away|take out|get rid|take off|take away|forget
create|add|make|generate|insert|set up|build|put|provision
update|edit|change|modify|alter|patch|set|adjust|replace|fix|correct|rewrite|overwrite
get|show|read|view|retrieve|fetch|display|see|look|detail|info|describe|tell
list|enumerate|overview|browse|which|available|offer|exist
search|find|look up|query|lookup|locate|look for|discover
send|post|publish|write|submit
run|execute|invoke|launch|trigger|start|perform|exec
move|transfer|relocate|reorder|drag
copy|duplicate|clone|replicate
rename|name|call differently|another name|other name|another title
upload|attach|import|put|push|send up
download|export|save|save as
fetch|download|pull
stop|cancel|abort|halt|terminate|end|kill|shut down|shutdown|power off
pause|suspend|disable|turn off|switch off|deactivate
enable|activate|turn on|switch on|power on
resume|continue|go on
restart|reboot|reset|reload|power cycle
archive|put away|hide|shelve
restore|unarchive|recover|bring back|undo|revert|roll back|rollback|go back
reopen|open again|uncomplete|untick
complete|finish|done|tick off|tick|check off|close
check|verify|validate|test|correct|valid
analyze|analyse|examine|inspect|review|investigate|evaluate|analysis|insight
evaluate|eval|assess|judge|rate|score|benchmark|grade
count|number|how many|how often|total|statistic|stats|occurrence|occur
compare|diff|difference
merge|combine|join|unite|union|bring into
split|divide|separate
convert|transform|translate|turn into|format
sort|order|rank
repeat|echo|again|say back
mirror|sync|synchronize|keep in step
compress|zip|archive|pack
extract|unzip|unpack
wait|until|pause|delay|sleep
approve|accept|confirm|sign off|agree
reject|decline|deny|refuse
allowed|permitted|may|accessible|touch
share|give access|invite
subscribe|subscription|watch|follow|monitor|observe|keep an eye|uptime
uptime|availability|reachable|down
snooze|postpone|later
embed|insert|include
publish|make public|visible|go live
unpublish|take offline|hide
upgrade|newer version|update|migrate
remember|memorize|store|memory|keep|note
recall|remember|know
forget|delete|remove

# How much, how big, how good
big|large|huge|size
resize|bigger|smaller|enlarge|shrink|size|small|big
scale|replica|resize|more|size
tall|height
limit|quota|maximum
average|mean
percent|percentage|share|proportion
metric|measurement|score|number
performance|speed|slow|fast|metric|latency|profile
usage|consumption|utilization|use
priority|urgent|important
unused|dead|not used|nothing use|dead code
latest|current|recent|today|newest
random|dice|chance

# People and accounts
user|account|person|people|who
member|user|people|who|team mate|colleague|everybody
team|group|organization|department|company
workspace|work space|organization
tenant|organization|directory
customer|client|buyer
company|firm|business|organization
contact|address book|phone number|person
whoami|who am i|current user|logged in|self|my profile|me|identity
login|sign in|log in|log on|logged in|authenticate|authentication|auth|oauth
logout|sign out|log out|disconnect
permission|access|right|role|chmod|allowed|may|privilege
permission|executable|chmod
sudo|root|privileged|administrator
owner|chown|belong
avatar|profile picture|icon
ban|block|kick out|kick
policy|rule|restriction
rule|condition|policy
audit|log|history|who did

# Tasks and plans
issue|ticket|bug|problem|error
task|todo|to do|job|assignment
card|task|ticket|item
subtask|child|smaller
item|entry|element|product
project|initiative|program
initiative|strategic goal|goal
board|kanban|planner|wall
column|lane|list
state|status|column|workflow
checklist|to do list|steps
assign|assignee|responsible|owner|give to|who works
dependency|depends|needs|requires
backlog|not started
sprint|cycle|iteration
milestone|goal|deadline|due date|due
estimate|effort|hours
roadmap|long term plan
customer need|feature request|wish
worklog|time spent|hours worked|time tracking
planner|plan|task
filter|saved view|saved query|view
label|tag|category|mark|keyword
comment|remark|feedback|note
feedback|complain|opinion|rating|survey|quality
activity|what happened|history
progress|how far|status
status|state|progress
plan|strategy|break down
think|reason|reflect|thought|step by step
reminder|remind|notification|notify|alert
schedule|timetable|plan|planned
cron|schedule|recurring|nightly|every day

# Messages, mail, calendar
message|chat|dm|text
sms|text message|text|phone
phone|telephone|mobile|call
mail|email|e mail|outlook|inbox|mailbox
draft|unsent|not sent|unpublished
attachment|enclosure|attached|file
reply|answer|respond|response
reply all|everybody
forward|pass on|send on|fwd
recipient|addressee|to whom
spam|junk
unread|not read
out of office|automatic reply|vacation|mailbox setting
calendar|appointment|meeting|agenda
event|meeting|appointment|happening|invitation
attendee|participant|invite|guest
tentative|tentatively|maybe
forum|thread|discussion|topic
thread|conversation|discussion
channel|room|conversation
reaction|emoji|thumb|like|react|smiley
poll|vote|survey
form|survey|questionnaire|sign up|fields
topic|subject
pin|stick
mute|silence
note|memo|onenote|notebook
section|part|chapter
webhook|callback|hook

# Files and text
folder|directory|dir
file|document|path
path|folder|root
text|content|words|body
documentation|docs|doc|guide|reference|manual|help|how to|tutorial
readme|documentation
example|sample|demo|snippet
disk|volume|storage|drive|space
tree|hierarchy|nested|structure
link|symlink|shortcut
line|row|hunk
head|beginning
tail|end
regex|pattern|expression|match|glob|grep
case|uppercase|upper|capital
reverse|backward
hash|checksum|digest
ocr|text recognition|read text
quote|citation|cite
transcript|subtitle|caption|transcribe|transcription|spoken|say
timestamp|unix|epoch|minute
summary|summarize|summarise|overview|short|gist
metadata|property|information|attribute
history|log|past|earlier|previous
version|revision
backup|snapshot|save|dump
pdf|document
slide|presentation|powerpoint|deck
word|docx|document
markdown|md
html|markup
json|jsonpath
csv|table

# Code and its tools
repository|repo|codebase|code base
git|version control
branch|fork|feature branch
fork|own copy
commit|check in|changeset|change|committed
conflict|collision|clash
diff|change|patch|touch
blame|who wrote|author|last changed
stash|set aside|put aside|uncommitted
checkout|switch to
remote|origin|upstream
pull request|pr|merge request|mr
review|look over|approve|reviewer
changelog|what is new|release note|what changed
source|code|program|script
function|method|procedure|lambda|serverless
symbol|variable|identifier|function|class
reference|usage|refer|used
definition|declaration|declared
refactor|rename|restructure
type|interface|definition
package|dependency|library|module|npm
install|set up|add
plugin|extension|addon|add on
lint|code quality|eslint|code style|style mistake
test|unit test|testing|spec
coverage|tested|untested
flaky|unstable|unreliable
compile|build|bundle
pipeline|ci|build|workflow|continuous integration
job|run|task|worker
runner|worker|agent
artifact|build output
release|ship|version
deploy|deployment|publish|ship|release|host|hosting|rollout|go live
debug|troubleshoot|diagnose|find out why
error|exception|crash|failure|fault|fail
stack|traceback
vulnerability|security hole|cve|unsafe
log|output|print|printed|printout|journal
console|log|developer tool
javascript|js
typescript|ts
python|py
terminal|shell|console|command line|bash|cli
command|shell|cmd|script
process|running program|pid
signal|interrupt|kill
template|boilerplate|skeleton|scaffold|starter|blueprint
preset|saved|template
spec|specification|openapi|swagger
mock|fake|stub|simulate
request|call|http
endpoint|api|rest|route
flag|toggle|feature flag|switch
variation|variant|alternative
experiment|a b test|ab test

# Data
database|db|datastore
schema|structure|definition
table|sheet|spreadsheet|grid
sheet|worksheet|tab
excel|spreadsheet|workbook|xlsx
cell|range
format|bold|font|background
record|document|entry|row
column|field|property|attribute
field|property|attribute|value
collection|set|group
index|indices|indexes
constraint|foreign key|unique|primary key
sql|select|statement
explain|query plan
migration|migrate|schema change
transaction|atomic
aggregate|sum|summarise|summarize|group by|total
filter|only|where|restrict
studio|gui|graphical|visual
dataset|data|corpus
replica|replication|copy|scale
queue|message queue|backlog
cache|redis|purge
entity|thing|concept|person|node
relation|edge|relationship|connection|association|connect|relate|works for|works at
observation|fact|remember|learn
graph|knowledge|relation|network
id|identifier|uuid

# Machines and clouds
server|machine|vm|virtual machine|instance|host|box|computer
droplet|virtual machine|vm|server|instance
container|docker|image
pod|container|workload
cluster|kubernetes|k8s
kubectl|kubernetes|k8s
context|cluster
helm|chart|package
manifest|yaml|apply
node|machine|worker
namespace|environment
memory|ram|heap
cpu|processor|load
bucket|storage|blob|object storage|s3|space
nfs|network share|file share|shared file
load balancer|lb|traffic
vpc|private network|network
firewall|inbound|outbound|port
cdn|edge|cache
domain|dns|hostname
ip|address
certificate|tls|ssl|https|cert
key|token|secret|credential|password
vault|secret|safe
rotate|renew|replace
env|environment|variable|staging|production
config|configuration|setting|option|preference
health|alive|up|status|working
alert|warning|alarm
region|datacenter|data center|location
infrastructure|terraform|iac
session|connection
close|hang up|disconnect
connect|connection string|log on
remote|ssh|other machine
sftp|ssh|remote file

# The web and the browser
web|internet|online
site|website|web page|homepage
page|webpage|article|website
url|link|address|href
scrape|extract|crawl|pull
crawl|whole site|all pages|spider
search engine|google|bing
browser|chrome|tab
tab|window|page
navigate|go to|visit|goto|open page|open
back|previous|earlier
click|press|tap|push
type|enter|fill|input
select|choose|pick|option|dropdown
hover|mouse over
scroll|swipe
keyboard|key|press
dialog|popup|modal|alert|pop up
element|button|selector|dom
frame|iframe|embedded
cookie|session
network|request|traffic|http
viewport|window size|screen size|resize
emulate|device|mobile
screenshot|screen shot|screen capture|capture|picture|snapshot
screencast|record|recording|video
accessibility|a11y|screen reader
seo|search engine|metadata
redirect|forward
cms|content management

# Looks
design|figma|mockup
component|widget|ui|control|button|building block
prop|property|attribute|input|parameter
theme|style|css|appearance|look
style|css|class|stylesheet|rule
color|colour|palette|hex
layout|arrangement|position|grid
block|section|ready made
accordion|collapsible
font|typeface
asset|media|image|file

# Pictures, sound, charts
image|picture|photo|icon|illustration|drawing|img
draw|paint|render|plot|visualize|picture
chart|graph|diagram|plot|visualization
scatter|correlation|correlate|against
bar|column
pie|share|proportion|percentage
line|trend
histogram|distribution
sankey|flow
overlap|intersect|intersection|common|venn
map|geography|region|district|province
network|relationship
video|clip|film|movie|youtube
audio|sound|music|song|voice|speech|melody|hear
speech|voice|microphone|dictate

# Places and weather
weather|forecast|temperature|rain|storm|sunny|snow|wind
place|poi|restaurant|shop|cafe|spot|sight
restaurant|eat|food|pizza|cafe|coffee
location|where|position|place
near|nearby|around|close|vicinity
coordinate|latitude|longitude|geocode|lat|point
address|street|reverse geocode
route|direction|way|navigation|drive|get from
walking|walk|on foot|pedestrian
bicycle|bike|cycling
distance|far|how long|travel time|kilometer|mile
elevation|altitude|height|high
polygon|area|zone|shape|region
isochrone|within reach|reachable
transit|bus|subway|train|public transport|metro
hotel|apartment|accommodation|lodging|stay|rent|listing|airbnb|flat|sleep
trip|travel|journey|itinerary|holiday|vacation
attraction|sight|landmark|sightseeing

# Knowledge and models
news|headline|current|latest|recent|today
encyclopedia|wikipedia|wiki
article|entry|page|paper
research|report|study|literature|in depth|thorough|deep
paper|publication|arxiv|scientific
question|ask|answer
model|llm|language model|ai
inference|predict|gpu
agent|assistant|bot
knowledge base|knowledge|retrieval|rag
prompt|instruction
vector|embedding|semantic
simulation|simulate|what if|scenario
scenario|projection|forecast|what if|project
course|lesson|tutorial|learn|chapter
problem|exercise|puzzle|challenge
contest|competition
submission|submitted|attempt|solution|solve
favorite|favourite|starred|bookmark|star

# Money and trade
budget|money|spend|spending|expense|finance
invoice|bill|billing|receipt
payment|pay|charge|checkout|card
refund|money back|give back
price|cost|rate|fee
order|purchase|sale
deal|opportunity|sale
lead|prospect
cart|basket
product|goods|article
inventory|stock
discount|coupon|voucher
shipping|delivery|parcel
currency|money|exchange rate
stock|ticker|market
crm|customer|hubspot|salesforce
engagement|call|meeting|interaction
cohort|retention|churn|stay
segment|group|cluster|audience

# Time and numbers
time|clock|hour
timezone|time zone|local time
date|day|when
month|week|year
relative|ago|until|since
add|sum|plus
subtract|minus
multiply|times|product
divide|quotient
mod|modulo|remainder
case|scenario

# Names of things that have two
drive|onedrive|cloud storage|sharepoint
office|microsoft|ms365|m365
postgres|postgresql|pg
mongo|mongodb
mysql|mariadb
elastic|elasticsearch
google cloud|gcloud|gcp
amazon|aws
tailwind|tailwindcss
material ui|mui
next js|nextjs
gas|petrol|fuel

# Chinese and English
删除|移除|清空|delete|remove|clear
创建|新建|新增|添加|建立|加一|create|add
修改|更新|编辑|更改|改成|update|edit
查询|查看|看看|看一下|获取|显示|get|show|query
搜索|查找|检索|找找|search|find
列出|列表|有哪些|list
发送|发给|发一|发布|send|post|publish
上传|upload
下载|导出|download|export
导入|import
复制|拷贝|copy|clone
移动|move
重命名|改名|rename
运行|执行|run|execute
启动|开始|start
停止|取消|关闭|stop|cancel|close
重启|restart
恢复|撤销|还原|restore|revert
回滚|rollback
打开|open
安装|install
部署|上线|deploy
构建|编译|build
测试|test
检查|验证|校验|check|validate
分析|analyze
比较|对比|compare|diff
合并|merge
转换|转成|convert
翻译|translate
生成|画一|画个|绘制|generate|draw
总结|摘要|summary
提醒|remind|reminder
分配|指派|assign
邀请|invite
回复|reply
评论|comment
订阅|subscribe
登录|login|auth
权限|permission
消息|信息|message
聊天|群聊|群组|chat|group
邮件|邮箱|mail|email
会议|日程|meeting|event|calendar
日历|calendar
任务|待办|task|todo
项目|project
问题|工单|缺陷|issue|bug
文件|file
文件夹|目录|folder|directory
文档|document|doc
云文档|docx|document
表格|多维表格|数据表|table|bitable
一张表|新表|table
记录|record
字段|列名|field|column
数据库|database
数据|data
集合|collection
索引|index
知识库|wiki|knowledge
图片|图像|照片|image|picture
视频|video
音频|语音|audio
截图|screenshot
图表|chart
柱状图|条形图|bar|column
折线图|line
饼图|pie
地图|map
附近|旁边|周围|周边|nearby|around
咖啡馆|餐厅|饭店|restaurant|cafe|poi
酒店|hotel
路线|怎么走|route|direction
开车|驾车|driving|drive
步行|走路|walking
骑车|骑行|bicycling|cycling
地铁|公交|transit
距离|多远|distance
坐标|经纬度|coordinate|geocode
地址|address
天气|下雨|气温|weather
时间|几点|time
日期|date
新闻|news
网页|网站|网址|page|site|web
浏览器|browser
点击|click
链接|link|url
代码|code
仓库|repository
分支|branch
提交|commit
拉取请求|pull
版本|version
函数|云函数|function
日志|log
环境|environment
变量|variable
配置|设置|config|setting
服务器|主机|server
服务|service
云托管|容器|container|run
镜像|image
集群|cluster
域名|domain
证书|certificate
存储|storage
密码|密钥|password|secret|key
用户|账号|user|account
成员|member
团队|部门|team|department
客户|customer
订单|order
支付|付款|payment
价格|price
发票|invoice
智能体|机器人|agent|bot
模型|model
静态托管|hosting|static
小程序|mini program
飞书|lark|feishu
用量|usage
状态|status
统计|多少|count
标签|label|tag
模板|template
组件|component
`
  .split('\n')
  .filter((line) => line && !line.startsWith('#'));
