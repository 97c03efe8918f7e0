// Waits for a browser, and says where.

import { Callback } from '../../chapters/21-authorization/browser.ts';

const callback = await Callback.open();
callback.expect('state');
console.log(callback.redirectUri);
