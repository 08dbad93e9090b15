"""The networks that make_networks.py writes: functions that give a module of PyTorch with random weights.

Shapes are those of the published networks; vocabularies are shorter where only a row of them is read. A module's `outputs`
names its results, and `free` the axes that may have any size: input or output → {axis: name}. Everything else has one batch
axis. The weights depend on torch's seed alone, which the caller sets."""
import torch
import transformers
from torch import nn

WORDS = 1000  # of networks that only read the rows of their texts' words


class Call(nn.Module):
    """A network of transformers that takes its inputs in the order of `inputs` and returns the outputs named."""

    free = {}

    def __init__(self, network, inputs, outputs):
        super().__init__()
        self.network, self.inputs, self.outputs = network, inputs, outputs

    def forward(self, *values):
        found = self.network(**dict(zip(self.inputs, values)))
        return tuple(getattr(found, name) for name in self.outputs)


class Step(nn.Module):
    """A language model's step of one token: takes keys and values of past tokens and gives them with the new token's.

    The mask of attention is made here: that of transformers uses vmap, which the TorchScript exporter cannot trace."""

    def __init__(self, network, layers):
        super().__init__()
        self.network, self.layers = network, layers
        places = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
        self.outputs = ["logits", *(f"present.{p}" for p in places)]
        self.free = {f"past.{p}": {0: "batch", 2: "past"} for p in places} | {f"present.{p}": {0: "batch", 2: "all"} for p in places}
        self.free |= {"attention_mask": {0: "batch", 1: "all"}}

    def forward(self, input_ids, attention_mask, *past):
        cache = transformers.DynamicCache()
        for layer in range(self.layers):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        hidden = (1 - attention_mask)[:, None, None, :].to(past[0].dtype) * torch.finfo(past[0].dtype).min
        found = self.network(input_ids=input_ids, attention_mask=hidden, past_key_values=cache, use_cache=True)
        return found.logits, *(a for layer in found.past_key_values.layers for a in (layer.keys, layer.values))


class Recurrent(nn.Module):
    """A tagger: LSTMs in both directions, then one dense layer."""

    outputs, free = ("tags",), {"x": {0: "batch", 1: "steps"}, "tags": {0: "batch", 1: "steps"}}

    def __init__(self, width, hidden, layers, tags):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * hidden, tags)

    def forward(self, x):
        return self.tags(self.lstm(x)[0])


def convolutions(inside, outside):
    """The two convolutions of each level of a U-Net."""
    parts = [nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(),
             nn.Conv2d(outside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
    return nn.Sequential(*parts)


class UNet(nn.Module):
    """Ronneberger et al. 2015, with padding and batch normalisation."""

    outputs, free = ("mask",), {}

    def __init__(self, width, levels):
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.down = nn.ModuleList(convolutions(a, b) for a, b in zip([3, *widths], widths))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(convolutions(2 * w, w) for w in reversed(widths[:-1]))
        self.mask = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for grow, block, beside in zip(self.grow, self.up, reversed(kept[:-1])):
            x = block(torch.cat([beside, grow(x)], 1))
        return self.mask(x)


class SuperResolution(nn.Sequential):
    """ESPCN, Shi et al. 2016."""

    outputs, free = ("y",), {}

    def __init__(self, times):
        super().__init__(nn.Conv2d(1, 64, 5, padding=2), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, times * times, 3, padding=1), nn.PixelShuffle(times))


def resnet50():
    return Call(transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000)), ["pixel_values"], ["logits"])


def mobilenetv2():
    """Padded on both sides, as torchvision's is; transformers pads as TensorFlow does unless told otherwise."""
    config = transformers.MobileNetV2Config(num_labels=1000, tf_padding=False)
    return Call(transformers.MobileNetV2ForImageClassification(config), ["pixel_values"], ["logits"])


def vit_b16():
    return Call(transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000)), ["pixel_values"], ["logits"])


def clip_vision_b32():
    return Call(transformers.CLIPVisionModelWithProjection(transformers.CLIPVisionConfig()), ["pixel_values"], ["image_embeds"])


def swin_t():
    return Call(transformers.SwinForImageClassification(transformers.SwinConfig(num_labels=1000)), ["pixel_values"], ["logits"])


def convnext_t():
    return Call(transformers.ConvNextForImageClassification(transformers.ConvNextConfig(num_labels=1000)), ["pixel_values"], ["logits"])


def segformer_b0():
    return Call(transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig(num_labels=150)), ["pixel_values"], ["logits"])


def whisper_tiny():
    return Call(transformers.WhisperModel(transformers.WhisperConfig()).encoder, ["input_features"], ["last_hidden_state"])


def wav2vec2_base():
    network = Call(transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config()), ["input_values"], ["logits"])
    network.free = {"input_values": {0: "batch", 1: "samples"}, "logits": {0: "batch", 1: "frames"}}
    return network


def gpt2_step():
    return Step(transformers.GPT2LMHeadModel(transformers.GPT2Config()), 12)


def qwen2_step():
    """Qwen2.5-0.5B with a sixth of its layers and a tenth of its vocabulary."""
    config = transformers.Qwen2Config(vocab_size=16000, hidden_size=896, intermediate_size=4864, num_hidden_layers=4, num_attention_heads=14,
                                      num_key_value_heads=2, rope_theta=1e6, tie_word_embeddings=True)
    return Step(transformers.Qwen2ForCausalLM(config), 4)


def bilstm():
    return Recurrent(128, 256, 2, 20)


def unet():
    return UNet(32, 5)


def espcn():
    return SuperResolution(3)


def texts(network, *inputs):
    network = Call(network, inputs, ["last_hidden_state"])
    network.free = {name: {0: "batch", 1: "tokens"} for name in (*inputs, "last_hidden_state")}
    return network


def t5_small():
    return texts(transformers.T5EncoderModel(transformers.T5Config(vocab_size=WORDS)), "input_ids", "attention_mask")


def bert(layers, width):
    config = transformers.BertConfig(vocab_size=WORDS, num_hidden_layers=layers, hidden_size=width, intermediate_size=4 * width,
                                     num_attention_heads=width // 64)
    return texts(transformers.BertModel(config, add_pooling_layer=False), "input_ids", "attention_mask", "token_type_ids")
