"""A trainer with metrics, a schedule, checkpoints and early stopping."""

import tempfile

import torch
from common import fill, numbers, report
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping, LRScheduler
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = numbers(64, 5)
data = DataLoader(TensorDataset(x, (x.sum(-1) > 0).long()), batch_size=16)
model = fill(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer, criterion = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9), nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion)
evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(criterion)})
trainer.add_event_handler(Events.EPOCH_STARTED, LRScheduler(torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)))
losses = []


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    losses.append(evaluator.run(data).metrics["loss"])


with tempfile.TemporaryDirectory() as folder:
    saver = Checkpoint(
        {"model": model, "optimizer": optimizer, "trainer": trainer}, DiskSaver(folder, require_empty=False)
    )
    trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
    evaluator.add_event_handler(
        Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer)
    )
    trainer.run(data, max_epochs=4)
    saved = torch.load(saver.last_checkpoint, weights_only=True)
    Checkpoint.load_objects({"model": model, "optimizer": optimizer, "trainer": trainer}, saved)
report(losses=losses, accuracy=evaluator.state.metrics["accuracy"], epochs=trainer.state.epoch)
