/* Unpacks images from a file, each into its SHA-256 or the word "damaged": unpack FILE.
 *
 * An image is two 64-bit numbers (bytes packed, bytes unpacked), the SHA-256 that it is to have, in
 * hexadecimal, and rows of base 85 as in cubins/. */
#include "launcher.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const acme_image acme_d128_causal_bf16_image = {NULL, 0, NULL, 0, NULL};

static int write_hash(const acme_image *image, char *hash) {
  const unsigned char *data;
  int status = get_cubin(image, &data);
  if (status == 0) sha256(data, image->cubin_bytes, hash);
  return status;
}

int main(int argc, char **argv) {
  uint64_t numbers[2];
  char expected[65] = {0};
  FILE *stream = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (stream == NULL) return 2;
  while (fread(numbers, sizeof numbers, 1, stream) == 1 && fread(expected, 64, 1, stream) == 1) {
    const size_t in_row = ACME_ROW_CHARACTERS / 5 * 4;
    size_t rows = (numbers[0] + in_row - 1) / in_row, row_bytes = ACME_ROW_CHARACTERS + 1;
    char hash[65];
    acme_image image = {NULL, 0, NULL, 0, expected};
    char(*text)[ACME_ROW_CHARACTERS + 1] = malloc(rows * row_bytes); /* no byte more: ASan looks */
    if (fread(text, row_bytes, rows, stream) != rows) return 2;
    image.rows = (const char(*)[ACME_ROW_CHARACTERS + 1])text;
    image.packed_bytes = (size_t)numbers[0];
    image.cubin_bytes = (size_t)numbers[1];
    int status = write_hash(&image, hash);
    puts(status == 0 ? hash : status == ACME_BAD_IMAGE + 256 * ACME_ARG_KERNEL ? "damaged" : "?");
    free(text);
  }
  return 0;
}
