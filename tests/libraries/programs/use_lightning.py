"""A trainer: fit, validate, test, predict, checkpoints, early stopping, a schedule; a run that is resumed."""

import logging
import tempfile
import warnings

import lightning as L
import torch
from common import fill, numbers, report
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning").setLevel(logging.ERROR)
x = numbers(48, 5)
labels = (x.sum(-1) > 0).long()


class Net(L.LightningModule):
    """Two layers, with a state of dropout that a generator draws."""

    def __init__(self, width=8, rate=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layers = fill(
            nn.Sequential(nn.Linear(5, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2))
        )
        self.losses, self.example_input_array = [], x[:2]

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.losses.append(loss.item())
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        found = self(batch[0])
        self.log_dict(
            {
                "val_loss": nn.functional.cross_entropy(found, batch[1]),
                "accuracy": (found.argmax(1) == batch[1]).float().mean(),
            }
        )

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]


class Data(L.LightningDataModule):
    """The same data for everything."""

    def train_dataloader(self):
        return DataLoader(TensorDataset(x, labels), batch_size=12)

    val_dataloader = test_dataloader = predict_dataloader = train_dataloader


def trainer(folder, epochs, *callbacks, **options):
    """A trainer on the CPU that shows nothing."""
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "log_every_n_steps": 1}
    logger = CSVLogger(folder, "log")
    return L.Trainer(
        max_epochs=epochs, accelerator="cpu", devices=1, logger=logger, callbacks=[*callbacks], **{**quiet, **options}
    )


with tempfile.TemporaryDirectory() as folder:
    L.seed_everything(1, verbose=False)
    kept = ModelCheckpoint(f"{folder}/kept", monitor="val_loss", save_top_k=2, filename="{epoch}")
    whole, model, data = trainer(folder, 4, kept, LearningRateMonitor()), Net(), Data()
    whole.fit(model, data)
    validated = whole.validate(model, data, verbose=False)[0]
    tested = whole.test(model, data, ckpt_path="best", verbose=False)[0]
    predicted = torch.cat(whole.predict(model, data))

    last = ModelCheckpoint(f"{folder}/last", save_last=True)
    first = Net()
    trainer(folder, 2, last).fit(first, data)
    second = Net()
    resumed = trainer(folder, 4)
    resumed.fit(second, data, ckpt_path=last.last_model_path, weights_only=False)
    again = Net.load_from_checkpoint(kept.best_model_path, weights_only=False)
    early = trainer(folder, 50, EarlyStopping("val_loss", patience=1, min_delta=0.05), enable_checkpointing=False)
    early.fit(Net(rate=0.02), data)
    clipped = Net(width=4)
    options = {"gradient_clip_val": 0.1, "accumulate_grad_batches": 2, "enable_checkpointing": False}
    trainer(folder, 2, **options, enable_model_summary=True).fit(clipped, data)
report(
    losses=model.losses,
    resumed=first.losses + second.losses == model.losses,
    same_weights=all(torch.equal(a, b) for a, b in zip(model.parameters(), second.parameters())),
    rates=resumed.optimizers[0].param_groups[0]["lr"],
    validated=validated,
    tested=tested,
    predicted=predicted,
    best=float(kept.best_model_score),
    width=again.hparams.width,
    stopped=early.current_epoch,
    clipped=clipped.losses,
    summary=[L.pytorch.utilities.model_summary.ModelSummary(model).total_parameters],
    steps=resumed.global_step,
)
