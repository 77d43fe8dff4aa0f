import { serverNow } from './api';
import { Refused, renew } from './oidc';
import { rejected, restore, session, signedOut, signOut, stored, type Stored } from './session';

// Tabs of one browser that show the same server share a session: a tab without one asks the others, and signing out in one ends it in all
// that share it. A tab that was signed in with another token has another session.

type Message =
  | { is: 'wanted'; by: string }
  | { is: 'session'; of: Stored; to: string }
  | { is: 'renewed'; of: Stored }
  | { is: 'ended'; id: string; why: string }
  | { is: 'active'; id: string };

const channel = new BroadcastChannel('lubdub' + location.pathname);
const send = (m: Message): void => channel.postMessage(m);

const renewBefore = 60_000; // how long before its token expires a session is renewed
const checkEvery = 5_000;
const self = String(Math.random()); // this tab, among those that ask
let lastInput = Date.now();

// shareSession follows the session from now on.
export function shareSession(): void {
  let of = stored.value;
  channel.onmessage = ({ data: m }: MessageEvent<Message>) => {
    const own = stored.value;
    if (m.is === 'wanted' && own) send({ is: 'session', of: own, to: m.by });
    else if (m.is === 'session' && m.to === self && !own) {
      adopt(m.of);
      lastInput = Date.now();
      keepRenewed();
    } else if (m.is === 'renewed' && own?.id === m.of.id) adopt({ ...m.of, scope: own.scope });
    else if (m.is === 'ended' && own?.id === m.id) leave(m.why);
    else if (m.is === 'active' && own?.id === m.id) lastInput = Date.now();
  };
  const adopt = (other: Stored): void => {
    of = other; // before the change below, which is not this tab's
    restore(other);
    of = stored.value;
  };
  const leave = (reason: string): void => {
    of = null;
    signOut(reason);
  };
  stored.follow(() => {
    const now = stored.value;
    if (of && !now) send({ is: 'ended', id: of.id, why: signedOut.value });
    const begun = now && now.id !== of?.id;
    of = now;
    if (!begun) return;
    lastInput = Date.now();
    keepRenewed();
  });
  if (stored.value) keepRenewed();
  else send({ is: 'wanted', by: self });

  let lastSent = 0;
  const input = (): void => {
    lastInput = Date.now();
    if (!stored.value || lastInput - lastSent < checkEvery) return;
    lastSent = lastInput;
    send({ is: 'active', id: stored.value.id });
  };
  for (const event of ['pointerdown', 'keydown', 'wheel']) addEventListener(event, input, { passive: true });
  setInterval(() => {
    const limit = stored.value?.idleTimeoutMs;
    if (limit && Date.now() - lastInput > limit)
      signOut('You were signed out because there was no input for ' + Math.round(limit / 60_000) + ' minutes.');
  }, checkEvery);
}

let wake: (() => void) | undefined;

// keepRenewed renews the session while it lasts. Of the tabs that share it one does so: that which has the lock, until it is closed.
function keepRenewed(): void {
  const id = stored.value!.id;
  if (!stored.value!.refreshToken) return;
  const lasts = (): boolean => stored.value?.id === id;
  void navigator.locks.request('lubdub.renew.' + id, async () => {
    for (let failed = false; lasts();) {
      const pause = failed ? checkEvery : Math.max(session.value!.expires - serverNow() - renewBefore, checkEvery);
      await new Promise<void>((r) => {
        wake = r;
        setTimeout(r, pause);
      });
      if (!lasts()) return;
      const store = (change: Partial<Stored>): void => {
        if (!lasts()) return;
        restore({ ...stored.value!, ...change });
        send({ is: 'renewed', of: stored.value! });
      };
      try {
        store({ token: await renew(stored.value!, (refreshToken) => store({ refreshToken })) });
        failed = false;
      } catch (e) {
        failed = true;
        if (e instanceof Refused && lasts()) signOut('Your session has ended. Sign in again. (' + e.message + ')');
      }
    }
  });
}

// The server has rejected the session's token, which may have expired while this host slept.
rejected.follow(() => wake?.());
