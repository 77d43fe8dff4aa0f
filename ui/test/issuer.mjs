// An OpenID provider as a process: node issuer.mjs PORT KEYS, where KEYS is a file with its private keys as a JWK set. Anyone can sign in
// with any name and password; ann is in the group platform.
import { readFileSync } from 'node:fs';
import Provider from 'oidc-provider';

const [port, keys] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: JSON.parse(readFileSync(keys, 'utf8')),
  clients: [
    {
      client_id: 'lubdub',
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/ui/'], // and any other: see below
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      id_token_signed_response_alg: 'ES256',
    },
  ],
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false, // ID tokens have the claims of their scopes
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: id === 'ann' ? ['staff', 'platform'] : ['staff'] }),
  }),
  features: { deviceFlow: { enabled: true } },
  clientBasedCORS: () => true,
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  ttl: {
    IdToken: 65,
    AccessToken: 65,
    RefreshToken: 3600,
    Session: 3600,
    Grant: 3600,
    Interaction: 600,
    DeviceCode: 600,
    AuthorizationCode: 60,
  },
});
provider.Client.prototype.redirectUriAllowed = () => true; // the server's port is not known before
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
