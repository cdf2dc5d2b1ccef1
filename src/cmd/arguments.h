/*
 * The flags and positional arguments ("words") of a command that does one thing and ends. Flags may
 * come before, between and after the words, as in etcd's tools.
 */
#ifndef VIGIL_CMD_ARGUMENTS_H
#define VIGIL_CMD_ARGUMENTS_H

#include "base/options/options.h"

enum { WORDS_MAX = 2 };

struct words {
    const struct options_table *table;
    void *config;                 /* filled */
    unsigned word_count_needed;   /* at most WORDS_MAX */
    unsigned word_count_more;     /* words that may follow */
    const char *words[WORDS_MAX]; /* NULL: not given */
    struct options options;
};

/* Returns -1 to continue; otherwise the exit status, after printing the help text or the error. */
int words_read(struct words *words, int count, char **args);
/* Prints the reason and how to get help. Returns the exit status. */
int words_refuse(const struct words *words, const char *why);

#endif
