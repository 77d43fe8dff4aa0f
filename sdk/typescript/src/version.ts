/** That of the SDK, as package.json has it. A constant, since a bundle has no package.json beside it. */
export const version = '0.1.0';
