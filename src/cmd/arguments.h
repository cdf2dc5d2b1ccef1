/*
 * The flags and words of a command that does one thing and ends: flags may stand before, between
 * and behind the words, as people know it from etcd's tools.
 */
#ifndef VIGIL_CMD_ARGUMENTS_H
#define VIGIL_CMD_ARGUMENTS_H

#include "base/options/options.h"

enum { WORDS_MAX = 2 };

struct words {
    const struct options_table *table;
    void *config;               /* filled */
    unsigned word_count_needed; /* at most WORDS_MAX */
    const char *words[WORDS_MAX];
    struct options options;
};

/* -1: go on. Otherwise the exit status; what there was to say was said. */
int words_read(struct words *words, int count, char **args);
/* Says why, and where help is. Returns the exit status. */
int words_refuse(const struct words *words, const char *why);

#endif
