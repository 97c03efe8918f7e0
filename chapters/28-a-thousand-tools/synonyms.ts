// synonyms.ts: words that people use for one another when they speak of software. General ones: none
// names a tool. Two words are a phrase, which finds the other words of its group.

export const GROUPS: readonly string[] = `
delete|remove|drop|erase|destroy|discard|clear|purge|clean|wipe|trash|tear down|throw away|take out|get rid|take off|take away
create|add|make|generate|insert|set up|build|put
update|edit|change|modify|alter|patch|set|adjust|replace|fix|correct
get|show|read|view|retrieve|fetch|display|see|look|detail|info|describe|tell
list|enumerate|overview|browse|which
search|find|look up|query|lookup|locate|look for|discover
send|post|publish|write|submit
run|execute|invoke|launch|trigger|start|perform
move|transfer|relocate|reorder|drag
copy|duplicate|clone|replicate
rename|name
upload|attach|import|put
download|export|save
stop|cancel|abort|halt|terminate|end|kill|shut down|shutdown|power off
pause|suspend|disable|turn off|switch off|deactivate
enable|activate|turn on|switch on|power on
resume|continue|go on
restart|reboot|reset|reload|power cycle
archive|put away|hide|shelve
restore|unarchive|recover|bring back|undo|revert|roll back|rollback
check|verify|validate|test|correct|valid
lint|code quality|eslint
analyze|analyse|examine|inspect|review|investigate|evaluate|analysis|insight
evaluate|eval|assess|judge|rate|score|benchmark|grade
count|number|how many|how often|total|statistic|stats
compare|diff|difference
merge|combine|join|unite|bring into
split|divide|separate
convert|transform|translate|turn into|format
sort|order|rank
performance|speed|slow|fast|metric|latency
approve|accept|confirm|sign off|agree
reject|decline|deny|refuse
assign|assignee|responsible|owner|give to
reply|answer|respond|response
forward|pass on|send on|fwd
subscribe|subscription|watch|follow|monitor|observe|keep an eye|uptime
notification|notify|remind|reminder|alert
snooze|postpone|later
login|sign in|log in|logged in|authenticate|authentication|auth|oauth
logout|sign out|log out|disconnect
whoami|who am i|current user|logged in|self|my profile|me
click|press|tap|push
type|enter|fill|input
select|choose|pick|option
hover|mouse over
scroll|swipe
wait|until
navigate|go to|visit|goto|open page
back|previous|earlier
screenshot|screen shot|capture|picture|snapshot
screencast|record|recording|video
image|picture|photo|icon|illustration|drawing|img
draw|paint|render|plot|visualize|picture
chart|graph|diagram|plot|visualization
overlap|intersect|venn
pie|share|proportion|percentage
map|geography|region|district|province
tree|hierarchy|nested|structure
network|relationship
video|clip|film|movie|youtube
audio|sound|music|song|voice|speech
transcript|subtitle|caption|transcribe|transcription|spoken
speech|voice|microphone|dictate
issue|ticket|bug|problem
task|todo|to do|job|assignment
card|task|ticket|item
item|entry|element|product
project|initiative|program
board|kanban|planner
checklist|to do list|steps
folder|directory|dir
file|document|path
documentation|docs|doc|guide|reference|manual|help|how to|tutorial
readme|documentation
example|sample|demo|snippet
text|content|words|body
message|chat|dm|text
mail|email|e mail|outlook|inbox|mailbox
draft|unsent|not sent
attachment|enclosure|attached|file
out of office|automatic reply|vacation|mailbox setting
calendar|appointment|meeting|agenda
event|meeting|appointment|happening
schedule|timetable|plan|planned
attendee|participant|invite|guest
contact|address book|phone number
user|account|person|people|who
member|user|people|who|team mate|colleague|everybody
team|group|organization|department|company
workspace|work space|organization
customer|client|buyer
company|firm|business|organization
comment|remark|feedback|note
note|memo|onenote|notebook
feedback|complain|opinion|rating|survey
label|tag|category|mark
sprint|cycle|iteration
milestone|goal|deadline|due date|due
priority|urgent|important
release|ship|version
deploy|deployment|publish|ship|release|host|hosting|rollout|go live
pipeline|ci|build|workflow|continuous integration
job|run|task|worker
branch|fork|feature branch
fork|own copy
commit|check in|changeset|change
history|log|past|earlier|previous
changelog|what is new|release note
blame|who wrote|author|last changed
stash|set aside|put aside|uncommitted
checkout|switch to
pull request|pr|merge request|mr
review|look over|approve
repository|repo|codebase
git|version control
source|code|program|script
function|method|procedure|lambda|serverless
symbol|variable|identifier|function|class
refactor|rename|restructure
type|interface|definition
component|widget|ui|control|button
theme|style|css|appearance|look
style|css|class
color|colour|palette|hex
layout|arrangement|position
package|dependency|library|module|npm
install|set up|add
unused|dead|not used
database|db|datastore
table|sheet|spreadsheet|grid
sheet|worksheet|tab
excel|spreadsheet|workbook|xlsx
cell|range
row|record|entry
record|document|entry|row
column|field|property|attribute
field|property|attribute|value
collection|set|group
index|indices|indexes
schema|structure|definition
sql|select|statement
migration|migrate|schema change
aggregate|sum|summarise|summarize|group by|total
filter|only|where|restrict
replica|replication|copy|scale
server|machine|vm|virtual machine|instance|host|box|computer
droplet|virtual machine|vm|server|instance
container|docker|image
pod|container|workload
cluster|kubernetes|k8s
kubectl|kubernetes|k8s
node|machine|worker
namespace|environment
scale|replica|resize|more|size
resize|bigger|smaller|enlarge|shrink|size
memory|ram
cpu|processor|load
usage|consumption|utilization|use
disk|volume|storage|drive
bucket|storage|blob|object storage|s3|space
nfs|network share|file share|shared file
load balancer|lb|traffic
vpc|private network|network
firewall|inbound|outbound|port
cdn|edge|cache
cache|redis|purge
domain|dns|hostname
ip|address
certificate|tls|ssl|https
key|token|secret|credential|password
rotate|renew|replace
env|environment|variable
config|configuration|setting|option|preference
setting|preference|option
permission|access|right|role|chmod|allowed|may
share|give access|invite
owner|chown|belong
log|output|print|printed|printout
error|exception|crash|failure|fault|fail
debug|troubleshoot|diagnose|find out why
health|alive|up|status|working
status|state|progress
alert|warning|alarm
backup|snapshot|save
weather|forecast|temperature|rain|storm|sunny
place|poi|restaurant|shop|cafe|spot|sight
location|where|position|place
near|nearby|around|close|vicinity
coordinate|latitude|longitude|geocode|lat
address|street|reverse geocode
route|direction|way|navigation|drive
distance|far|how long|travel time
elevation|altitude|height|high
transit|bus|subway|train|public transport|metro
hotel|apartment|accommodation|lodging|stay|rent|listing|airbnb
trip|travel|journey|itinerary|holiday|vacation
attraction|sight|landmark|sightseeing
web|internet|online
site|website|web page|homepage
page|webpage|article|website
url|link|address|href
scrape|extract|crawl|pull
crawl|whole site|all pages|spider
browser|chrome|tab
tab|window|page
form|sign up|fields
dialog|popup|modal|alert|pop up
element|button|selector
cookie|session
console|log|developer tool
network|request|traffic|http
request|call|http|endpoint
endpoint|api|rest|route
webhook|callback|hook
mock|fake|stub|simulate
spec|specification|openapi|swagger
javascript|js
typescript|ts
python|py
html|markup
markdown|md
pdf|document
json|jsonpath
csv|table
regex|pattern|expression|match|glob
news|current|latest|recent|today
encyclopedia|wikipedia|wiki
article|entry|page|paper
research|report|study|literature|in depth|thorough
paper|publication|arxiv|scientific
question|ask|answer
summary|summarize|summarise|overview|short
model|llm|language model|ai
agent|assistant|bot
knowledge base|knowledge|retrieval|rag
dataset|data|corpus
prompt|instruction
vector|embedding|semantic
simulation|simulate|what if|scenario
scenario|projection|forecast|what if
cohort|retention|churn|stay
segment|group|cluster
budget|money|spend|spending|expense|finance
invoice|bill|billing|receipt
payment|pay|charge|checkout
price|cost|rate|fee
order|purchase|sale
flag|toggle|feature flag|switch
variation|variant|alternative
time|clock|hour
timezone|time zone
date|day|when
month|week|year
timestamp|unix|epoch
add|sum|plus
subtract|minus
multiply|times|product
divide|quotient
mod|modulo|remainder
random|dice
terminal|shell|console|command line|bash|cli
command|shell|cmd|script
process|running program|pid
signal|interrupt|kill
session|connection
remote|ssh|other machine
sftp|ssh|remote file
forum|thread|discussion|topic
thread|conversation|discussion
channel|room|conversation
reaction|emoji|thumb|like|react
design|figma|mockup
template|boilerplate|skeleton|scaffold|starter
preset|saved|template
block|section|ready made
test|unit test|testing
coverage|tested|untested
case|scenario
entity|thing|concept|person
relation|edge|relationship|connection
observation|fact|remember|learn
remember|memorize|store|memory|keep
graph|knowledge|relation
metadata|property|information|attribute
seo|search engine|metadata
id|identifier|uuid
permission|right|privilege
policy|rule|restriction
rule|condition|policy
limit|quota|maximum
version|revision
think|reason|reflect|thought|step by step
plan|strategy|break down
course|lesson|tutorial|learn
problem|exercise|puzzle|challenge
contest|competition
submission|submitted|attempt|solution
favorite|favourite|starred|bookmark
roadmap|long term plan
customer need|feature request|wish
worklog|time spent|hours worked|time tracking
planner|plan|task
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
删除|移除|delete|remove
创建|新建|添加|create|add
发送|send
消息|message
文件|file
查询|搜索|查找|search|find
修改|更新|update
列出|列表|list
天气|下雨|weather
图片|图像|照片|image
视频|video
数据|data
数据库|database
表格|table
部署|deploy
用户|user
网页|网站|page|site
附近|nearby|around
路线|怎么走|route|direction
地址|address
飞书|lark|feishu
`.trim().split('\n');
