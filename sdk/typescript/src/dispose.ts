// Node 20.0 to 20.4 have no Symbol.asyncDispose, which `await using` looks for. It must be there before classes that have such a method.
const symbols = Symbol as unknown as Record<'asyncDispose' | 'dispose', symbol | undefined>;
symbols.asyncDispose ??= Symbol.for('Symbol.asyncDispose');
symbols.dispose ??= Symbol.for('Symbol.dispose');

export {};
