/* Unpacks images from a file, each into its CRC-32 or the word "damaged": unpack FILE.
 *
 * An image is two 64-bit numbers (digits, bytes unpacked), the CRC-32 that it is to have, in
 * 64 bits, and rows of digits as in cubins/. */
#include "launcher.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const acme_image acme_d128_causal_bf16_image = {NULL, 0, NULL, 0, 0, NULL};

int main(int argc, char **argv) {
  uint64_t numbers[3];
  FILE *stream = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (stream == NULL) return 2;
  while (fread(numbers, sizeof numbers, 1, stream) == 1) {
    const size_t in_row = ACME_ROW_CHARACTERS;
    size_t rows = (numbers[0] + in_row - 1) / in_row, row_bytes = ACME_ROW_CHARACTERS + 1;
    const unsigned char *data;
    acme_image image = {NULL, 0, NULL, 0, (uint32_t)numbers[2], NULL};
    char(*text)[ACME_ROW_CHARACTERS + 1] = malloc(rows * row_bytes); /* no byte more: ASan looks */
    if (fread(text, row_bytes, rows, stream) != rows) return 2;
    image.rows = (const char(*)[ACME_ROW_CHARACTERS + 1])text;
    image.digits = (size_t)numbers[0];
    image.cubin_bytes = (size_t)numbers[1];
    int status = get_cubin(&image, &data);
    if (status == 0)
      printf("%08x\n", (unsigned)checksum(data, image.cubin_bytes));
    else
      puts(status == ACME_BAD_IMAGE + 256 * ACME_ARG_KERNEL ? "damaged" : "?");
    free(text);
  }
  return 0;
}
