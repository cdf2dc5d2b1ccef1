/*
 * One table of flags. Its rows produce the command line, the environment, the help text, the man
 * page and the shell completion; nothing about a flag is written twice.
 *
 * Flags are parsed like Go's flag package does: -f and --f alike, "--f v" or "--f=v", a bool
 * without a value is true, "--" or the first other word ends them, the last of several wins, unless
 * it `repeats`. A flag
 * that was not given may come from the environment: --foo-bar from VIGIL_FOO_BAR or else
 * ETCD_FOO_BAR.
 *
 * Values are stored in the caller's configuration struct. Texts and lists are borrowed from the
 * command line, the environment or the table, and never freed.
 */
#ifndef VIGIL_BASE_OPTIONS_OPTIONS_H
#define VIGIL_BASE_OPTIONS_OPTIONS_H

#include "base/error.h"
#include "base/options/value.h"

#include <stdio.h>

enum option_kind {
    OPTION_BOOL,     /* bool */
    OPTION_INT,      /* int64_t */
    OPTION_SIZE,     /* uint64_t bytes */
    OPTION_DURATION, /* int64_t ns */
    OPTION_TEXT,     /* const char * */
    OPTION_LIST,     /* const char *, comma-separated: option_list_next */
    OPTION_ENUM,     /* int: index in choices */
    OPTION_ANY,      /* no field; "--f" or "--f=anything", for obsolete flags */
};

#define OPTION_NOWHERE SIZE_MAX
#define OPTION_SECRET_SHOWN "(not shown)" /* in place of the value of a secret one */

struct option {
    const char *name; /* without dashes */
    enum option_kind kind;
    const char *fallback; /* the default, written like a value; never NULL */
    const char *help;     /* one or two sentences; NULL hides the row from all output */
    /* Offset of the field in the configuration; OPTION_NOWHERE: the value is dropped. */
    size_t offset;
    const char *choices;  /* enum: "json|console" */
    int64_t min, max;     /* int, size, duration: both 0 means any */
    const char *alias_of; /* an alias of that row; all fields besides the name are ignored */
    const char *ignored;  /* why it has no effect; NULL: it has an effect */
    bool refused;   /* has no effect, but a user who gives it relies on it: the program must stop */
    bool flag_only; /* can only be set on the command line */
    bool secret;    /* the value is never shown or logged */
    bool repeats;   /* list: the values of several flags are joined */
    char letter;    /* "-w" for "--write-out", in options_parse_words; 0: none */
};

struct option_group {
    const char *title; /* heading in the help */
    const struct option *rows;
    size_t count;
};

struct options_table {
    const char *program; /* "vigil serve" */
    const char *summary; /* one line */
    const struct option_group *const *groups;
    size_t group_count;
    const char *man_more; /* further sections of the manual page, roff; may be NULL */
    const char *words;    /* the arguments after the flags: "FILE"; may be NULL */
    bool flags_only;      /* the environment is not used */
    /* Prefixes of environment variables, up to a NULL; the first takes precedence. NULL: VIGIL_
     * and ETCD_. */
    const char *const *prefixes;
};

enum { OPTIONS_MAX = 256, OPTIONS_JOINED_BYTES = 4096 };

/* Iterates over the rows of all groups: NULL after the last. */
const struct option *options_row(const struct options_table *table, size_t place);
/* Finds a row by its name or an alias; NULL: none. */
const struct option *options_find(const struct options_table *table, struct slice name);

enum option_source {
    OPTION_FROM_DEFAULT,
    OPTION_FROM_ENVIRONMENT,
    OPTION_FROM_FLAG,
    OPTION_FROM_FILE,
};

struct options {
    const struct options_table *table;
    void *config;
    uint8_t source[OPTIONS_MAX];       /* enum option_source, by row */
    char joined[OPTIONS_JOINED_BYTES]; /* values of flags that were given several times … */
    size_t joined_len;                 /* … and the length of all of them */
};

/* Fills the configuration with the defaults. A default that does not parse is a bug. */
void options_init(struct options *options, const struct options_table *table, void *config);

/* Parses flags from args[0] on. ret_rest gets the index of the first word that is not a flag.
 * ST_END: -h, -help or --help was given. ST_INVALID: the error says what is wrong and what may have
 * been meant; the program prints it and exits with 2. */
MUST_CHECK
enum status options_parse_args(struct options *options, int count, char *const *args, int *ret_rest,
                               struct error *error);

/* Called for variables that are used, overridden by a flag, unknown, or of a row that only a flag
 * can set; may be NULL. */
enum option_notice { OPTION_ENV_USED, OPTION_ENV_SHADOWED, OPTION_ENV_UNKNOWN, OPTION_ENV_SPECIAL };
struct option_listener {
    void (*fn)(void *ctx, enum option_notice notice, const char *variable, const char *value);
    void *ctx;
};

/* To be called after options_parse_args. variables is like environ. A second call begins again. */
MUST_CHECK
enum status options_parse_environment(struct options *options, char *const *variables,
                                      struct option_listener listener, struct error *error);

/* Whether a variable for this flag exists and is empty, which counts as not set. */
bool options_variable_is_empty(const struct options_table *table, char *const *variables,
                               const char *flag);

/* Sets one by name, as a configuration file does. ST_NOT_FOUND: no such flag. */
MUST_CHECK
enum status options_set(struct options *options, const char *name, const char *value,
                        enum option_source source, struct error *error);

/* The source of the value. The name must exist. */
enum option_source options_source(const struct options *options, const char *name);

/* The name nearest to a mistyped one, or NULL when none is near. */
const char *options_nearest(const struct options_table *table, struct slice name);

void options_write_help(const struct options_table *table, FILE *to);
/* roff, section 8. date: "2026-11-15". */
void options_write_man(const struct options_table *table, const char *version, const char *date,
                       FILE *to);
/* Markdown tables for the documentation, one for each group. */
void options_write_markdown(const struct options_table *table, FILE *to);

#endif
