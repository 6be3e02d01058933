/** Confirmation to end a task. */

import { useState } from 'preact/hooks';
import { endTask, type Task } from '../api';
import { tasksChanged } from '../mesh';
import { Dialog } from './dialog';

export function EndTask({ task, onClose }: { task: Task; onClose: () => void }) {
  const [error, setError] = useState<string | null>(null);
  const end = async (): Promise<void> => {
    try {
      await endTask(task.name);
      await tasksChanged();
      onClose();
    } catch (why) {
      setError((why as Error).message);
    }
  };
  return (
    <Dialog title={`End ${task.name}?`} onClose={onClose}>
      <p>Its probes stop measuring it. Its results are kept.</p>
      {error && <p role="alert">{error}</p>}
      <div class="actions">
        <button type="button" onClick={onClose} autofocus>
          Keep it
        </button>
        <button type="button" class="danger" onClick={() => void end()}>
          End it
        </button>
      </div>
    </Dialog>
  );
}
