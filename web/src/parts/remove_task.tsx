/** Confirmation to remove an ended task with its results. */

import { useState } from 'preact/hooks';
import { removeTask, type Task } from '../api';
import { tasksChanged } from '../mesh';
import { Dialog } from './dialog';

interface Props {
  task: Task;
  onClose: () => void;
  onRemoved: () => void;
}

export function RemoveTask({ task, onClose, onRemoved }: Props) {
  const [error, setError] = useState<string | null>(null);
  const remove = async (): Promise<void> => {
    try {
      await removeTask(task.name, task.number);
      onRemoved();
      await tasksChanged();
    } catch (why) {
      setError((why as Error).message);
    }
  };
  return (
    <Dialog title={`Remove ${task.name}?`} onClose={onClose}>
      <p>All results of this task (number {task.number}) are deleted. They cannot be restored.</p>
      {error && <p role="alert">{error}</p>}
      <div class="actions">
        <button type="button" onClick={onClose} autofocus>
          Keep it
        </button>
        <button type="button" class="danger" onClick={() => void remove()}>
          Remove it
        </button>
      </div>
    </Dialog>
  );
}
