/* Command lines whose flags may stand between, before and after their words. */
#ifndef VIGIL_BASE_OPTIONS_WORDS_H
#define VIGIL_BASE_OPTIONS_WORDS_H

#include "base/options/options.h"

struct option_words {
    const char **words; /* room for as many as there are arguments */
    size_t count;
    size_t dash; /* words before "--"; SIZE_MAX: there was none */
};

/*
 * Parses flags and words in any order, as Go's pflag package does, which etcdctl uses: "--limit 5",
 * "--limit=5", "-w json", "-wjson", "-w=json", "-iw json"; everything after "--" is a word.
 *
 * ST_END: help was requested. ST_INVALID: the error is pflag's text.
 */
MUST_CHECK
enum status options_parse_words(struct options *options, int count, char *const *args,
                                struct option_words *ret_words, struct error *error);

/* Whether this flag also consumes the next argument; an unknown one without "=" does. */
bool options_flag_takes_next(const struct options_table *table, const char *flag);

#endif
