#!/usr/bin/env python3
"""Draws a line of text and the same line turned by 180 degrees, and writes both as the classifier's inputs.

usage: render.py OUT_FOLDER [--text "..."]
writes OUT/upright.png, OUT/turned.png and OUT/upright.npy, OUT/turned.npy (f32 1x3x48x192)

The network reads lines of 48 x 192 pixels: height 48, width kept in proportion and padded with zeros on the
right, channels BGR, values (v/255 - 0.5) / 0.5.
"""
import argparse
import os
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

HEIGHT, WIDTH = 48, 192
FONTS = [
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
]


def draw_line(text):
    path = next((f for f in FONTS if os.path.exists(f)), None)
    if path is None:
        sys.exit("render: no font found; install fonts-dejavu-core")
    font = ImageFont.truetype(path, 34)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("RGB", (right - left + 16, bottom - top + 14), (250, 250, 245))
    ImageDraw.Draw(picture).text((8 - left, 7 - top), text, font=font, fill=(20, 20, 30))
    return picture


def as_input(picture):
    width = min(WIDTH, max(1, round(picture.width * HEIGHT / picture.height)))
    rgb = np.asarray(picture.resize((width, HEIGHT), Image.BILINEAR), dtype=np.float32)
    bgr = rgb[:, :, ::-1].transpose(2, 0, 1)
    out = np.zeros((1, 3, HEIGHT, WIDTH), dtype=np.float32)
    out[0, :, :, :width] = (bgr / 255 - 0.5) / 0.5
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--text", default="Tenon fits wood")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    upright = draw_line(args.text)
    for name, picture in (("upright", upright), ("turned", upright.rotate(180))):
        picture.save(os.path.join(args.out, name + ".png"))
        np.save(os.path.join(args.out, name + ".npy"), as_input(picture))


if __name__ == "__main__":
    main()
