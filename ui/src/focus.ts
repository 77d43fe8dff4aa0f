// Focus never falls back to the top of the page: when the focused element is removed, its nearest remaining ancestor gets the focus, or
// else the page's heading.
export function keepFocus(): void {
  let last: Element[] = []; // the focused element and its ancestors
  const ancestors = (e: Element | null): Element[] => (e && e !== document.body ? [e, ...ancestors(e.parentElement)] : []);
  addEventListener('focusin', (e) => {
    last = ancestors(e.target as Element);
  });
  addEventListener('focusout', (e) =>
    queueMicrotask(() => {
      if ((e.target as Element).isConnected && e.target === last[0]) last = [];
    }),
  );
  new MutationObserver(() => {
    if (!last[0] || last[0].isConnected || document.activeElement !== document.body) return;
    const left = last.find((a) => a.isConnected && a.closest('main')) ?? document.querySelector('main h1');
    last = [];
    if (!(left instanceof HTMLElement)) return;
    if (!left.hasAttribute('tabindex')) left.tabIndex = -1;
    left.focus({ preventScroll: true });
  }).observe(document.body, { childList: true, subtree: true });
}
