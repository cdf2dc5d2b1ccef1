/* NULL instead of an object: see vigil/types.h. */
#include "suite.h"

#include <ctype.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_SECONDS = 20, NAME_BYTES = 128 };

typedef long (*any_function)(long, long, long, long, long, long, long, long, long, long);

/* These need what they are given: structs to set up, and memory functions. */
static bool needs_arguments(const char *name)
{
    size_t len = strlen(name);
    return strcmp(name, "vigil_set_allocator") == 0 ||
           (len > 5 && strcmp(name + len - 5, "_init") == 0);
}

/* All arguments are 0, also those that are bytes or numbers. A crash ends only the child. */
static bool survives(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    any_function function;
    int status;
    CHECK(symbol);
    memcpy(&function, &symbol, sizeof(function));
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(CALL_SECONDS);
        (void)function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status == 0;
}

/* VIGIL_SYMBOLS names the list of all functions. */
static void every_function_accepts_null(void)
{
    FILE *map = fopen(getenv("VIGIL_SYMBOLS"), "r");
    char name[NAME_BYTES];
    unsigned called = 0, failed = 0;
    CHECK(map);
    while (fscanf(map, " %127[^; \n]%*[; \n]", name) == 1) {
        if (strncmp(name, "vigil_", 6) != 0 || needs_arguments(name))
            continue;
        called++;
        if (!survives(name)) {
            fprintf(stderr, "%s does not accept NULL\n", name);
            failed++;
        }
    }
    fclose(map);
    CHECK(called > 100);
    CHECK(failed == 0);
}

const struct suite_test null_tests[] = {
    {"every_function_accepts_null", every_function_accepts_null},
    {NULL, NULL},
};
