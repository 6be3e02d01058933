/** The page: header, footer and the current part. */

import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { HELP, useKeys } from './keys';
import { follow, link, mayChange, me } from './mesh';
import { Entry } from './pages/entry';
import { Overview } from './pages/overview';
import { TaskPage } from './pages/task';
import { Dialog } from './parts/dialog';
import { go, route } from './route';
import { useStore } from './store';
import { nextTheme, theme } from './theme';

function Page() {
  const [at, who] = [useStore(route), useStore(me)];
  const [helps, setHelps] = useState(false);
  const main = useRef<HTMLElement>(null);
  const place = at.is === 'task' ? at.name : at.is;
  useKeys({
    '?': () => setHelps(true),
    o: () => go('#/'),
    n: () => mayChange(who) && go('#/new'),
    t: nextTheme,
  });
  useEffect(() => {
    document.title = at.is === 'task' ? `${at.name} \u2013 Wirestamp` : 'Wirestamp';
  }, [at]);
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [place]);
  return (
    <>
      <Header onHelp={() => setHelps(true)} />
      <main ref={main} tabIndex={-1}>
        <Away />
        {at.is === 'overview' && <Overview />}
        {at.is === 'new' && <Entry />}
        {at.is === 'task' && <TaskPage key={at.name} name={at.name} range={at.range} />}
      </main>
      {helps && <Help onClose={() => setHelps(false)} />}
    </>
  );
}

function Header({ onHelp }: { onHelp: () => void }) {
  const [who, chosen] = [useStore(me), useStore(theme)];
  return (
    <header class="top">
      <a class="home" href="#/">
        <img src="icon.svg" alt="" width="24" height="24" />
        Wirestamp
      </a>
      <LinkState />
      <span class="spread" />
      {who && (
        <span class="who fine">
          {who.role} <b>{who.name}</b>
        </span>
      )}
      <button type="button" onClick={nextTheme} title="light, dark, or system theme (t)">
        {chosen}
      </button>
      <button type="button" onClick={onHelp} aria-label="help" title="help (?)">
        ?
      </button>
    </header>
  );
}

function LinkState() {
  const { is } = useStore(link);
  const words = { live: 'live', asking: 'polling every 2 s', away: 'no answer' };
  return (
    <span class={`link ${is}`} role="status">
      {words[is]}
    </span>
  );
}

function Away() {
  const state = useStore(link);
  if (state.is !== 'away') return null;
  return (
    <p class="panel error" role="alert">
      {state.why}; retrying. The page shows old data.
    </p>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {HELP.map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p class="fine">
        Times of day are in this machine's time zone. The &plusmn; of a delay includes the errors of the stamps at both
        points and of their machines' clocks.
      </p>
      <form method="dialog" class="actions">
        <button autofocus>Close</button>
      </form>
    </Dialog>
  );
}

render(<Page />, document.body);
follow();
