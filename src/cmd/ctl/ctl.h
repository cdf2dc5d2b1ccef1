/*
 * The command line client: `vigil get KEY`, and the same commands when the program is started under
 * the name etcdctl.
 *
 *     main ──► ctl_main ──► finds the command, reads its flags and words,        (frame.c)
 *                           the global flags, ETCDCTL_* and the profile
 *                  └──────► command->run(ctl) ──► ctl_call, ctl_print …  ──► exit code
 *
 * A command is a row in the table of its group, such as kv/kv_group.c, and a function in a file of
 * its own, such as kv/del.c. Help, manual pages, completions and the documentation are made from
 * these tables.
 *
 * One thread; a run ends with the process, so a command frees nothing that lives as long as it.
 */
#ifndef VIGIL_CMD_CTL_CTL_H
#define VIGIL_CMD_CTL_CTL_H

#include "cmd/ctl/command.h"
#include "codec/pb/pb.h"

#include <vigil/vigil.h>

/* Whose texts and output. Under the name etcdctl everything that a script can see is etcdctl's;
 * ETCDCTL_COMPAT=3.4 selects the older one where they differ. */
enum ctl_style { CTL_VIGIL, CTL_ETCDCTL_3_7, CTL_ETCDCTL_3_4 };

/* The exit codes of etcdctl. */
enum ctl_exit {
    CTL_OK = 0,
    CTL_ERROR = 1,
    CTL_BAD_CONNECTION = 2,
    CTL_INVALID_INPUT = 3,
    CTL_BAD_FEATURE = 4,
    CTL_INTERRUPTED = 5,
    CTL_IO = 6,
    CTL_BAD_ARGUMENTS = 128,
};

enum ctl_format {
    CTL_SIMPLE,
    CTL_FIELDS,
    CTL_JSON,
    CTL_PROTOBUF,
    CTL_TABLE,
    CTL_JSONL,          /* ours: one object per line, keys and values readable */
    CTL_UNKNOWN_FORMAT, /* ctl_client and ctl_print refuse it, as etcdctl does at that time */
};

/* What every command understands. The texts are borrowed from the command line, the environment or
 * the profile. */
struct ctl_globals {
    const char *profile; /* ours */
    const char *endpoints, *discovery_srv, *discovery_srv_name;
    const char *discovered; /* the endpoints of the domain; NULL: there are none */
    bool insecure_discovery, insecure_transport, insecure_skip_verify;
    const char *ca_file, *cert_file, *key_file;
    const char *user, *password, *token;
    int64_t dial_timeout_ns, command_timeout_ns, keepalive_ns, keepalive_timeout_ns;
    int64_t max_request_bytes, max_receive_bytes;
    const char *write_out; /* as it was given … */
    int format;            /* … and its enum ctl_format */
    bool hex, debug;
    int decode; /* ours: --decode auto|raw|text|json|k8s (cmd/ctl/decode/decode.h) */
    int colour; /* ours: --color auto|always|never; NO_COLOR is respected */
};

/* One run of a command. */
struct ctl {
    enum ctl_style style;
    const struct ctl_command *command;
    struct ctl_globals globals;
    const struct options *given; /* which flags were given: options_source */
    const char *const *words;    /* arguments that are not flags */
    size_t word_count;
    const size_t *word_lens;    /* NULL: they end with their first zero byte */
    size_t words_before_dash;   /* before "--"; SIZE_MAX: it was not given */
    const void *flags;          /* the command's own struct */
    FILE *out;                  /* standard output */
    struct arena *arena;        /* lives until the process ends */
    vigil_client *client;       /* NULL until ctl_client */
    struct ctl_answer *answers; /* calls whose responses are still used */
};

/* Takes settings that were neither flags nor variables from the profile (explore's profile/). */
int ctl_use_profile(struct ctl *ctl, struct options *options);

/* A text in double quotes, as Go's %q writes it (print/). */
void ctl_write_quoted(FILE *to, struct slice text);

/* Iterates over all groups: NULL after the last. */
const struct ctl_group *ctl_group_at(size_t place);

/* How many words of the arguments name a command: 0, if there is none. Flags may stand before
 * them. */
unsigned ctl_has(int count, char *const *args);
/* The style of the program etcdctl: ETCDCTL_COMPAT=3.4 selects the older one. */
enum ctl_style ctl_etcdctl_style(void);
/* Runs a command. args[0] is its first word or a flag. Returns the exit code. */
int ctl_main(int count, char **args, enum ctl_style style);
/* The same for a command that was found: its flags, the environment and the profile are read. */
struct ctl_found;
int ctl_run(const struct ctl_found *found, int count, char **args, enum ctl_style style);

static inline struct slice ctl_word(const struct ctl *ctl, size_t place)
{
    return ctl->word_lens ? slice_of(ctl->words[place], ctl->word_lens[place])
                          : slice_from_text(ctl->words[place]);
}

static inline bool ctl_is_etcdctl(const struct ctl *ctl)
{
    return ctl->style != CTL_VIGIL;
}

#endif
