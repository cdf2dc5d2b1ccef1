/*
 * The command line of kube-apiserver: its flags by name, and their parsing with its rules and error
 * texts (those of Go's pflag package: "--f v" or "--f=v", a boolean may stand alone, an underscore
 * in a name is a dash). The list comes from the program itself (tools/kubegen-flags.py), except for
 * one flag of Vigil.
 */
#ifndef VIGIL_CMD_NAMES_APISERVER_FLAGS_H
#define VIGIL_CMD_NAMES_APISERVER_FLAGS_H

#include "base/error.h"
#include "base/memory/arena.h"

#include <stdio.h>

enum apiserver_flag_kind {
    APISERVER_BOOL,     /* "--f" is "--f=true" */
    APISERVER_OPTIONAL, /* the same, but the value is not a boolean */
    APISERVER_VALUE,    /* the last of several values counts */
    APISERVER_LIST,     /* several values are joined with commas */
};

struct apiserver_flag {
    const char *name; /* without dashes */
    enum apiserver_flag_kind kind;
    char letter; /* "-v"; 0: none */
};

/* Start even if flags were given that have no effect here and on which an operator may rely. */
#define APISERVER_ACCEPT_IGNORED "accept-ignored-flags"

enum { APISERVER_FLAGS_MAX = 256 };

/* The values that were given, by the place of the flag in the list. Texts are borrowed from the
 * arguments or live in the arena. */
struct apiserver_flags {
    const char *values[APISERVER_FLAGS_MAX]; /* NULL: not given */
};

/* NULL after the last. */
const struct apiserver_flag *apiserver_flag_at(size_t place);

/* Fails with the text that kube-apiserver prints after "Error: ". */
MUST_CHECK
enum status apiserver_flags_parse(struct apiserver_flags *flags, struct arena *arena, int count,
                                  char *const *args, struct error *error);

/* The value of a flag of the list; NULL: not given. */
const char *apiserver_flags_get(const struct apiserver_flags *flags, const char *name);

#endif
