import { Fragment, options, type VNode } from 'preact';

// Workers and clients supply texts. Characters that would reorder or hide others are shown as escapes in every element.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
export const escape = (s: string): string => s.replace(hidden, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

const attributes = ['title', 'aria-label', 'placeholder'];
const clean = (v: unknown): unknown => (typeof v === 'string' ? escape(v) : Array.isArray(v) ? v.map(clean) : v);

export function escapeAll(): void {
  const before = options.vnode;
  options.vnode = (node: VNode) => {
    if (typeof node.type === 'string' || node.type === Fragment) {
      const props = node.props as Record<string, unknown>;
      for (const name of attributes) if (typeof props[name] === 'string') props[name] = escape(props[name]);
      if (props.children) props.children = clean(props.children);
    }
    before?.(node);
  };
}
