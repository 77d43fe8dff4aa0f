// Node 20.0 to 20.4 lack Symbol.asyncDispose, which `await using` needs. It must be defined before classes with such a method.
const symbols = Symbol as unknown as Record<'asyncDispose' | 'dispose', symbol | undefined>;
symbols.asyncDispose ??= Symbol.for('Symbol.asyncDispose');
symbols.dispose ??= Symbol.for('Symbol.dispose');

export {};
