/*
 * Runs a fuzz harness over the files of corpus directories, as an ordinary test: linked with the
 * harness instead of libFuzzer, so it needs no clang. What each costs is checked (cost.h), and what
 * it costs when parts of it are repeated; the stack is small, so that deep recursion ends it.
 *
 *     run_corpus [--once] DIRECTORY...
 *
 * --once runs each file as it is and nothing else, to see what the corpus reaches.
 */
#include "cost.h"

#include "base/buf.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STACK_BYTES = 1 << 20 };

static void fail(const char *why, const char *what)
{
    fprintf(stderr, "run_corpus: %s: %s\n", why, what);
    exit(1);
}

/* The command line. */
struct given {
    char **directories; /* ends with NULL */
    bool once;
};

static void run_file(const char *path, bool once)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot open", path);
    AUTO(buf_fini) struct buf bytes = {0};
    size_t got;
    do {
        if (buf_reserve(&bytes, 4096) != ST_OK)
            fail("out of memory", path);
        got = fread(bytes.ptr + bytes.len, 1, 4096, file);
        bytes.len += got;
    } while (got > 0);
    fclose(file);

    /* A copy without slack, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(bytes.len ? bytes.len : 1);
    if (!exact)
        fail("out of memory", path);
    slice_copy(exact, buf_slice(&bytes));
    if (once) {
        (void)fuzz_input(exact, bytes.len);
    } else {
        (void)cost_run(fuzz_input, &fuzz_limits, exact, bytes.len);
        cost_pump(fuzz_input, &fuzz_limits, exact, bytes.len);
    }
    free(exact);
}

static unsigned run_directory(const char *path_of_all, bool once)
{
    DIR *directory = opendir(path_of_all);
    if (!directory)
        fail("cannot open", path_of_all);
    unsigned files = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        int len = snprintf(path, sizeof(path), "%s/%s", path_of_all, entry->d_name);
        if (len < 0 || (size_t)len >= sizeof(path))
            fail("path too long", entry->d_name);
        run_file(path, once);
        files++;
    }
    closedir(directory);
    return files;
}

static void *run_all(void *argument)
{
    const struct given *given = argument;
    unsigned files = 0;
    for (char **directory = given->directories; *directory; directory++)
        files += run_directory(*directory, given->once);
    if (files == 0)
        fail("no files in", given->directories[0]);
    struct cost most = cost_most();
    printf("%u files; long ones take up to %llu us, %zu bytes, %llu steps a byte, %zu of stack\n",
           files, (unsigned long long)most.cpu_ns / 1000, most.memory_bytes,
           (unsigned long long)most.steps, most.stack_bytes);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
    struct given given = {argv + 1 + once, once};
    if (argc < 2 + once)
        fail("usage", "run_corpus [--once] DIRECTORY...");
    if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK_BYTES) ||
        pthread_create(&thread, &attributes, run_all, &given) || pthread_join(thread, NULL))
        fail("no thread for", argv[1]);
    return 0;
}
