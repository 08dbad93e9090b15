/* replay.c - calls a fuzz target once with each file of the folders named: the corpus as an
 * ordinary test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return 1;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    /* An exact copy: reading past the end shows under the address sanitizer. */
    uint8_t *data = size >= 0 ? malloc(size ? (size_t)size : 1) : NULL;
    int failed = !data || fread(data, 1, (size_t)size, f) != (size_t)size;
    fclose(f);
    if (!failed) LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return failed;
}

int main(int argc, char **argv) {
    int count = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
            char path[1024];
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (replay(path)) fprintf(stderr, "%s: cannot be read\n", path), failed++;
            count++;
        }
        if (dir) closedir(dir);
    }
    printf("%d inputs\n", count);
    return failed || count == 0;
}
