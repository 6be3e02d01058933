/** Form for a new task. */

import { useState } from 'preact/hooks';
import { enterTask } from '../api';
import { mayChange, me, newest, probes, tasks, tasksChanged } from '../mesh';
import { go, taskAddress } from '../route';
import { useStore } from '../store';
import { FIELDS, MEASURES, SCHEDULE, taskSpec, type Field, type Values } from '../task_form';

export function Entry() {
  const [who, there, all] = [useStore(me), useStore(probes), useStore(tasks)];
  const [measure, setMeasure] = useState(MEASURES[0]?.name ?? '');
  const [values, setValues] = useState<Values>({});
  const [error, setError] = useState<string | null>(null);
  const name = values['name'] ?? '';
  const before = newest(all ?? []).find((it) => it.name === name && !it.ended);
  const submit = async (): Promise<void> => {
    setError(null);
    try {
      await enterTask(name, taskSpec(measure, values));
      await tasksChanged();
      go(taskAddress(name));
    } catch (why) {
      setError((why as Error).message);
    }
  };
  const input = (field: Field) => (
    <Input
      key={field.key}
      field={field}
      value={values[field.key] ?? ''}
      onInput={(value) => setValues({ ...values, [field.key]: value })}
    />
  );
  if (who && !mayChange(who)) {
    return <p class="empty">Your role is {who.role}: only operators can create tasks.</p>;
  }
  return (
    <form
      class="panel entry"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h1>New task</h1>
      <fieldset class="measures">
        <legend>What to measure</legend>
        {MEASURES.map((it) => (
          <label key={it.name} class="choice">
            <input
              type="radio"
              name="measure"
              value={it.name}
              checked={measure === it.name}
              onChange={() => setMeasure(it.name)}
            />
            <span>
              <b>{it.name}</b>
              <span class="fine">{it.means}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="fields">
        {input({ key: 'name', label: 'Name', hint: 'a-z, 0-9 and hyphens', needed: true })}
        {(FIELDS[measure] ?? []).map(input)}
      </div>
      <details>
        <summary>Schedule (default: always)</summary>
        <div class="fields">{SCHEDULE.map(input)}</div>
      </details>
      <datalist id="points">
        {there?.flatMap((probe) => {
          const interfaces = probe.health?.captures.map((it) => it.interface) ?? [];
          return (interfaces.length > 0 ? interfaces : ['eth0']).map((it) => (
            <option key={`${probe.name}/${it}`} value={`${probe.name}/${it}`} />
          ));
        })}
      </datalist>
      <datalist id="probe-names">
        {there?.map((it) => (
          <option key={it.name} value={it.name} />
        ))}
      </datalist>
      {before && (
        <p class="notice" role="note">
          A task {name} exists: if this one differs, the old one ends. Its results stay.
        </p>
      )}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="main">
          Create task
        </button>
        <a class="button" href="#/">
          Back
        </a>
      </div>
    </form>
  );
}

interface InputProps {
  field: Field;
  value: string;
  onInput: (value: string) => void;
}

function Input({ field, value, onInput }: InputProps) {
  const { key, label, hint, needed, list, choices } = field;
  const id = `field-${key}`;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {!needed && <span class="fine"> optional</span>}
      </label>
      {choices ? (
        <select id={id} value={value} onChange={(event) => onInput(event.currentTarget.value)}>
          {choices.map((it) => (
            <option key={it}>{it}</option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          value={value}
          required={needed ?? false}
          list={list ?? ''}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-describedby={`${id}-hint`}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
      <span class="fine" id={`${id}-hint`}>
        {hint}
      </span>
    </div>
  );
}
