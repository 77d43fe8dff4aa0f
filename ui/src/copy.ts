import { done } from './acts';

// copy puts a text on the clipboard and reports this, as `what`. Browsers allow it on secure origins only; `instead` is what to do there.
export async function copy(text: string, what = text, instead = ''): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    done.set({ text: `Copied ${what}.`, failed: false });
  } catch {
    done.set({ text: `The browser did not allow copying ${what}. ${instead}`.trim(), failed: true });
  }
}
