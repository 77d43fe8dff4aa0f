import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api';
import { forbidden } from './acts';
import { copy } from './copy';
import { fieldOf, parse, toBody, type Body, type Errors, type FormField, type Values } from './formsbody';
import { go, href } from './route';
import { scopeNow, session } from './session';
import { use } from './signal';

// Forms that create and edit objects. What is typed stays until the server has stored it or the session ends: through failed requests and
// on other pages.

export interface Draft {
  key: string; // the Idempotency-Key of its request
  base: Values; // what the form began with
  values: Values;
}

const drafts = new Map<string, Draft>();
session.follow(() => {
  if (!session.value) drafts.clear(); // the next session may be another person's
});

const newKey = (): string => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');

export interface FormProps {
  name: string; // of the draft, within the session's subject and scope
  fields: FormField[];
  initial: Values;
  verb: string;
  danger?: boolean;
  back?: string; // the page that Cancel leads to
  cli: (body: Body, draft: Draft) => string;
  save: (body: Body, draft: Draft) => Promise<void>;
  after?: Record<string, (values: Values) => ComponentChildren>; // what is shown below a field
}

const idOf = (path: string): string => 'f-' + path.replace(/\W/g, '-');

export function Form({ name, fields, initial, verb, danger, back, cli, save, after = {} }: FormProps): JSX.Element {
  const at = JSON.stringify([session.value?.subject, scopeNow(), name]);
  const fresh = (): Draft => ({ key: newKey(), base: initial, values: initial });
  const kept = useRef(drafts.has(at));
  const [draft, setDraft] = useState<Draft>(() => drafts.get(at) ?? fresh());
  const [errors, setErrors] = useState<Errors>({});
  const [failed, setFailed] = useState<{ text: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null),
    summary = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (failed) summary.current?.focus();
  }, [failed]);
  const keep = (next: Draft): void => {
    drafts.set(at, next);
    setDraft(next);
  };
  const change = (path: string, text: string): void => {
    keep({ ...draft, values: { ...draft.values, [path]: text } });
    if (errors[path]) check(path, text);
  };
  const check = (path: string, text: string): void => {
    const { [path]: _, ...others } = errors;
    const f = fields.find((f) => f.path === path)!;
    try {
      if (text.trim()) parse(f, text, draft.base[path]);
      setErrors(others);
    } catch (e) {
      setErrors({ ...others, [path]: (e as Error).message });
    }
  };
  const forget = (): void => void drafts.delete(at);
  const latest = useRef(draft); // what is typed while a request is under way
  latest.current = draft;
  const { body, errors: wrong } = toBody(fields, draft.values, draft.base);
  const submit = async (): Promise<void> => {
    const found = { ...wrong };
    for (const f of fields) {
      const input = form.current?.querySelector<HTMLInputElement>('#' + idOf(f.path));
      if (input?.validity.badInput) found[f.path] = 'complete the date and the time';
    }
    setErrors(found);
    if (Object.keys(found).length) return setFailed({ text: 'Not sent.' });
    setBusy(true);
    setFailed(null);
    try {
      await save(body, draft);
      forget();
    } catch (e) {
      const field = e instanceof ApiError ? (e.body as { field?: string } | null)?.field : undefined;
      const f = field ? fieldOf(fields, field) : undefined;
      let text = e instanceof Error ? e.message : String(e);
      if (e instanceof ApiError && e.code === 'idempotency_mismatch') {
        text = 'An earlier submit, whose answer was lost, has created it with other fields. Submit again to create another one.';
        keep({ ...latest.current, key: newKey() });
      }
      if (f) setErrors({ [f.path]: text });
      setFailed({ text: f ? 'The server refused this.' : text });
    }
    setBusy(false);
  };
  const show = (f: FormField): JSX.Element => (
    <div key={f.path} class={f.half || (f.more && f.kind !== 'rest') ? '' : 'full'}>
      <Input of={f} text={draft.values[f.path] ?? ''} error={errors[f.path]} change={change} check={check} />
      {after[f.path]?.(draft.values)}
    </div>
  );
  const more = fields.filter((f) => f.more);
  return (
    <form
      class="form panel"
      ref={form}
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void submit();
      }}
    >
      {kept.current && (
        <p class="kept">
          This is what you entered before.{' '}
          <button
            type="button"
            onClick={() => {
              forget();
              kept.current = false;
              setErrors({});
              setFailed(null);
              setDraft(fresh());
            }}
          >
            Start over
          </button>
        </p>
      )}
      {failed && (
        <div class="failed" role="group" aria-label="What is wrong" tabIndex={-1} ref={summary}>
          <p>
            <strong>{failed.text}</strong>
          </p>
          <ul>
            {fields
              .filter((f) => errors[f.path])
              .map((f) => (
                <li key={f.path}>
                  <button
                    type="button"
                    class="tolink"
                    onClick={() => form.current?.querySelector<HTMLElement>('#' + idOf(f.path))?.focus()}
                  >
                    {f.label}: {errors[f.path]}
                  </button>
                </li>
              ))}
          </ul>
        </div>
      )}
      <div class="pairs">{fields.filter((f) => !f.more).map(show)}</div>
      {more.length > 0 && (
        <More open={more.some((f) => errors[f.path] || draft.values[f.path])}>
          <div class="pairs">{more.map(show)}</div>
        </More>
      )}
      <Cli text={cli(body, draft)} />
      <div class="acts">
        <button type="submit" class={danger ? 'danger primary' : 'primary'} aria-disabled={busy ? 'true' : undefined}>
          {busy ? 'Working …' : verb}
        </button>
        {back && (
          <button
            type="button"
            onClick={() => {
              forget();
              go(back);
            }}
          >
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

export function Cli({ text }: { text: string }): JSX.Element {
  return (
    <p class="cli">
      The same on the command line:<code tabIndex={0}>{text}</code>
    </p>
  );
}

// More is open while one of its fields is filled or wrong: nothing that is sent is hidden.
function More({ open, children }: { open: boolean; children: ComponentChildren }): JSX.Element {
  const [opened, set] = useState(open);
  return (
    <details open={opened || open} onToggle={(e) => set(e.currentTarget.open)}>
      <summary>More</summary>
      {children}
    </details>
  );
}

function Input({
  of: f,
  text,
  error,
  change,
  check,
}: {
  of: FormField;
  text: string;
  error?: string;
  change: (path: string, text: string) => void;
  check: (path: string, text: string) => void;
}): JSX.Element {
  const id = idOf(f.path);
  const attributes = {
    id,
    value: text,
    autoComplete: 'off',
    spellcheck: false,
    'aria-required': f.required ? ('true' as const) : undefined,
    'aria-invalid': error ? ('true' as const) : undefined,
    'aria-describedby': [f.hint && id + '-hint', error && id + '-error'].filter(Boolean).join(' ') || undefined,
    onInput: (e: { currentTarget: { value: string } }) => change(f.path, e.currentTarget.value),
    onChange: (e: { currentTarget: { value: string } }) => check(f.path, e.currentTarget.value),
  };
  const long = f.kind === 'json' || f.kind === 'rest' || f.kind === 'pairs';
  return (
    <div class={`field${f.kind === 'check' ? ' onerow' : ''}`}>
      <label for={id}>
        {f.label}
        {f.required && <span class="dim"> (required)</span>}
      </label>
      {f.kind === 'choice' ? (
        <select {...attributes}>
          {f.choices?.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      ) : f.kind === 'check' ? (
        <input
          id={id}
          type="checkbox"
          aria-describedby={attributes['aria-describedby']}
          checked={text === 'true'}
          onChange={(e) => change(f.path, String(e.currentTarget.checked))}
        />
      ) : long ? (
        <textarea {...attributes} rows={f.kind === 'pairs' ? 3 : 5} />
      ) : (
        <input
          {...attributes}
          type={f.kind === 'time' ? 'datetime-local' : 'text'}
          step={f.kind === 'time' ? 1 : undefined}
          inputMode={f.kind === 'number' || f.kind === 'seconds' ? 'decimal' : undefined}
          list={f.suggestions?.length ? id + '-list' : undefined}
        />
      )}
      {!!f.suggestions?.length && (
        <datalist id={id + '-list'}>
          {f.suggestions.map((s) => (
            <option key={s} value={s} />
          ))}
        </datalist>
      )}
      {f.hint && (
        <p class="dim" id={id + '-hint'}>
          {f.hint}
        </p>
      )}
      {error && (
        <p class="wrong" id={id + '-error'}>
          {error}
        </p>
      )}
    </div>
  );
}

// OpenForm is the button that opens a form. What the role forbids is disabled, as other actions are.
// quiet: the actions next to it show the reason.
export function OpenForm({
  to,
  op,
  label,
  why,
  quiet,
}: {
  to: string;
  op: string;
  label: string;
  why?: string;
  quiet?: boolean;
}): JSX.Element {
  use(session);
  const no = forbidden(op) || why || '';
  return (
    <span class="acts">
      <button type="button" aria-disabled={no ? 'true' : undefined} title={no || undefined} onClick={() => !no && go(href(to))}>
        {label}
        {no && <span class="sr">. {no}</span>}
      </button>
      {no && !quiet && <span class="why">{no}</span>}
    </span>
  );
}

// Secret shows what the server answers once. It is in this component only.
export function Secret({ label, value, focus }: { label: string; value: string; focus?: boolean }): JSX.Element {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (focus) box.current?.focus();
  }, []);
  const take = (): void => {
    box.current?.select();
    void copy(value, `the ${label.toLowerCase()}`, 'It is selected: copy it with the keyboard.');
  };
  return (
    <div class="secret field">
      <label for="secret">{label}</label>
      <div class="acts">
        <input id="secret" ref={box} readOnly value={value} spellcheck={false} autoComplete="off" />
        <button type="button" class="primary" onClick={take}>
          Copy
        </button>
      </div>
      <p>
        <strong>It will not be shown again.</strong> Copy it before you leave this page.
      </p>
    </div>
  );
}
