import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, post } from '../api';
import type { components } from '../api.gen';
import { forbidden } from '../acts';
import { line, where } from '../cli';
import { Form, Secret } from '../forms';
import { toValues, type FormField } from '../formsbody';
import { WithIds } from '../ids';
import { Facts, Moment, Section, Title } from '../parts';
import { rolesOf } from '../roles.gen';
import { session } from '../session';
import { use } from '../signal';

type Made = components['schemas']['CreateTokenResponse'];
type Revoked = components['schemas']['RevokeTokensResponse'];

const roles: Record<string, string> = {
  viewer: 'reads everything and changes nothing',
  submitter: 'creates, reads and cancels tasks',
  operator: 'reads everything and acts on it, but creates no tasks',
  dispatcher: 'does what submitter and operator do',
  enroll: 'registers workers, and nothing else',
  admin: 'does everything, including revoking tokens',
};

// mayMake reports whether a role includes another: it may do all that the other may. The server decides in the same way.
const mayMake = (own: string, other: string): boolean => Object.values(rolesOf).every((r) => !r.includes(other) || r.includes(own));

const everything = (id: string): string => (id === '*' ? 'all' : id);

export function Tokens(): JSX.Element {
  const [made, setMade] = useState<Made | null>(null);
  return (
    <>
      <Title name="Tokens">Tokens</Title>
      {made ? <MadeToken of={made} again={() => setMade(null)} /> : <Make done={setMade} />}
      <Revoke />
    </>
  );
}

function Make({ done }: { done: (made: Made) => void }): JSX.Element {
  const who = use(session)!;
  const fields: FormField[] = [
    {
      path: 'role',
      label: 'Role',
      kind: 'choice',
      choices: Object.keys(roles)
        .filter((r) => mayMake(who.role, r))
        .map((r) => [r, `${r}: ${roles[r]}`]),
    },
    { path: 'ttlMs', label: 'Lifetime, seconds', kind: 'seconds', required: true, hint: '1 to 43,200, which is 12 hours.' },
  ];
  return (
    <Section title="Make a token">
      <p>
        It has no more rights than yours, is valid for the same tenant and workspace ({everything(who.tenant)} / {everything(who.workspace)}
        ), expires no later, and is revoked with yours. The command needs the server's signing keys.
      </p>
      <Form
        name="token"
        fields={fields}
        initial={toValues(fields, { role: mayMake(who.role, 'viewer') ? 'viewer' : who.role, ttlMs: 3_600_000 })}
        verb="Make token"
        cli={(body) =>
          line([
            ...['lubdub', 'token', 'make', '--role', String(body.role), '--tenant', who.tenant, '--workspace', who.workspace],
            ...(who.subject ? ['--subject', who.subject] : []),
            ...(body.ttlMs ? ['--ttl', `${Number(body.ttlMs) / 1000}s`] : []),
          ])
        }
        save={async (body) => done(await call<Made>('POST', 'v1/tokens', { body, everywhere: true }))}
      />
    </Section>
  );
}

function MadeToken({ of, again }: { of: Made; again: () => void }): JSX.Element {
  return (
    <Section title="New token" side={<button onClick={again}>Make another token</button>}>
      <div class="form">
        <Secret label="Token" value={of.token} focus />
      </div>
      <Facts
        of={[
          ['Role', `${of.role}: ${roles[of.role] ?? ''}`],
          ['Tenant', everything(of.tenantId)],
          ['Workspace', everything(of.workspaceId)],
          ...(of.queue ? [['Queue', of.queue] as [string, string]] : []),
          ['Subject', of.subject],
          ['Expires', <Moment at={of.expiresAt} />],
        ]}
      />
    </Section>
  );
}

const revocation: FormField[] = [
  { path: 'subject', label: 'Subject', hint: 'Whose tokens: as events and logs name it.' },
  { path: 'workerId', label: 'Worker', hint: 'Instead: the tokens of this worker and of its tasks.' },
  { path: 'issuedBefore', label: 'Issued before, UTC', kind: 'time', hint: 'Default: now. Later tokens stay valid.' },
];

function Revoke(): JSX.Element {
  const who = use(session)!;
  const [revoked, set] = useState<Revoked | null>(null);
  const no = forbidden('revokeTokens');
  return (
    <Section title="Revoke tokens">
      {no ? (
        <p>
          <button type="button" class="danger" aria-disabled="true" title={no}>
            Revoke<span class="sr">. {no}</span>
          </button>{' '}
          <span class="dim">{no}</span>
        </p>
      ) : (
        <>
          <p>All servers reject the tokens of this subject or worker within 2 s. Tokens that are issued later are valid.</p>
          <Form
            key={revoked?.issuedBefore ?? ''}
            name="revocation"
            fields={revocation}
            initial={toValues(revocation, {})}
            verb="Revoke"
            danger
            cli={(body) =>
              line([
                ...['lubdub', 'token', 'revoke'],
                ...(body.subject ? ['--subject', String(body.subject)] : []),
                ...(body.workerId ? ['--worker', String(body.workerId)] : []),
                ...(body.issuedBefore ? ['--issued-before', String(body.issuedBefore)] : []),
                ...where(),
              ])
            }
            after={{
              subject: (v) =>
                v.subject?.trim() === who.subject ? (
                  <p class="wrong">This is your own subject: you will be signed out, and the tokens that you made end.</p>
                ) : null,
            }}
            save={async (body) => set(await post<Revoked>('v1/tokens:revoke', body))}
          />
          <div role="status">
            {revoked && (
              <p>
                Revoked the tokens of <WithIds text={revoked.subject ?? revoked.workerId ?? ''} /> in {everything(revoked.tenantId)} /{' '}
                {everything(revoked.workspaceId)} that were issued until <Moment at={revoked.issuedBefore} />.
              </p>
            )}
          </div>
        </>
      )}
    </Section>
  );
}
