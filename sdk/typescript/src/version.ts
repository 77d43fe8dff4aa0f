/** The version of the SDK, as in package.json. A constant, since a bundle has no package.json. */
export const version = '0.1.0';
