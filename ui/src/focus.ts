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

// Tabs that are opened from here are signed in: browsers copy this tab's session only to tabs that the page itself opens.
export function signInTabs(): void {
  const open = (e: MouseEvent): void => {
    const link = (e.target as Element).closest?.('a');
    if (
      !link ||
      e.defaultPrevented ||
      !link.getAttribute('href')?.startsWith('#/') ||
      !(e.ctrlKey || e.metaKey || e.shiftKey || e.button === 1)
    )
      return;
    if (window.open(link.href, '_blank')) e.preventDefault();
  };
  addEventListener('click', open);
  addEventListener('auxclick', open);
}
