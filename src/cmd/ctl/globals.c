#include "cmd/ctl/globals.h"

#include "base/xalloc.h"

static const struct option etcdctl_rows[] = {
    FLAG_LIST("endpoints", ctl_globals, endpoints, "127.0.0.1:2379",
              "The servers, separated by commas. The first that can be reached is used.",
              .repeats = true),
    FLAG_TEXT("write-out", ctl_globals, write_out, "simple",
              "The format of the output: simple, fields, json, protobuf or table.", .letter = 'w'),
    FLAG_BOOL("hex", ctl_globals, hex, "Show keys, values and ids in hexadecimal."),
    FLAG_DURATION("command-timeout", ctl_globals, command_timeout_ns, "5s",
                  "How long a command that does not wait for anything may take."),
    FLAG_DURATION("dial-timeout", ctl_globals, dial_timeout_ns, "2s",
                  "How long one attempt to connect may take."),
    FLAG_DURATION("keepalive-time", ctl_globals, keepalive_ns, "2s",
                  "After this time without input the client asks whether the server is alive."),
    FLAG_DURATION("keepalive-timeout", ctl_globals, keepalive_timeout_ns, "6s",
                  "A connection without an answer for this long is given up."),
    FLAG_TEXT("user", ctl_globals, user, "",
              "NAME or NAME:PASSWORD. Without a password the command asks for it.", .secret = true),
    FLAG_TEXT("password", ctl_globals, password, "", "The password, if --user does not contain it.",
              .secret = true),
    FLAG_TEXT("cacert", ctl_globals, ca_file, "",
              "A file of certificates that may have signed the server's; uses TLS."),
    FLAG_TEXT("cert", ctl_globals, cert_file, "", "The client's certificate, a file; uses TLS."),
    FLAG_TEXT("key", ctl_globals, key_file, "", "The key of that certificate, a file."),
    FLAG_TRUE("insecure-transport", ctl_globals, insecure_transport,
              "Connect without TLS unless an endpoint or another flag asks for it."),
    FLAG_BOOL("insecure-skip-tls-verify", ctl_globals, insecure_skip_verify,
              "Accept every certificate of a server: only for tests."),
    FLAG_TEXT("discovery-srv", ctl_globals, discovery_srv, "",
              "A domain whose SRV records name the endpoints.", .letter = 'd'),
    FLAG_TEXT("discovery-srv-name", ctl_globals, discovery_srv_name, "",
              "Appended to the service whose SRV records are looked up."),
    FLAG_TRUE("insecure-discovery", ctl_globals, insecure_discovery,
              "Accept endpoints without TLS from SRV records."),
    FLAG_BOOL("debug", ctl_globals, debug, "Say on standard error what the client does."),
    FLAG_INT("max-request-bytes", ctl_globals, max_request_bytes, "0",
             "The largest request that is sent; 0 is 2 MiB."),
    FLAG_INT("max-recv-bytes", ctl_globals, max_receive_bytes, "0",
             "The largest response that is accepted; 0 is 2 GiB."),
    FLAG_TEXT("auth-jwt-token", ctl_globals, token, "",
              "A token to use instead of a user and a password.", .secret = true),
};

enum { ROWS_NOT_3_4 = 3 }; /* max-request-bytes, max-recv-bytes, auth-jwt-token */

static const struct option our_rows[] = {
    FLAG_TEXT("profile", ctl_globals, profile, "",
              "Endpoints, certificates and user of this name in the file of profiles."),
    FLAG_ENUM("decode", ctl_globals, decode, "auto", "How values are shown.",
              "auto|raw|text|json|k8s"),
    FLAG_ENUM("color", ctl_globals, colour, "auto",
              "Whether the output has colours; auto: on a terminal, unless NO_COLOR is set.",
              "auto|always|never"),
};

static const struct option_group etcdctl_group = {"Flags of all commands", etcdctl_rows,
                                                  COUNT_OF(etcdctl_rows)};
static const struct option_group our_group = {"Flags of all commands that etcdctl does not have",
                                              our_rows, COUNT_OF(our_rows)};
static const struct option_group *const groups[] = {&etcdctl_group, &our_group};
static const char *const vigil_prefixes[] = {"VIGIL_", "ETCDCTL_", NULL};
static const char *const etcdctl_prefixes[] = {"ETCDCTL_", NULL};

static const struct options_table vigil_table = {
    .program = "vigil",
    .summary = "Commands for a server of etcd's API",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .prefixes = vigil_prefixes,
};
static const struct options_table etcdctl_table = {
    .program = "etcdctl",
    .summary = "Commands for a server of etcd's API",
    .groups = groups,
    .group_count = 1,
    .prefixes = etcdctl_prefixes,
};

/* Without the rows of 3.7, which are the last. */
static const struct option_group group_3_4 = {"Flags of all commands", etcdctl_rows,
                                              COUNT_OF(etcdctl_rows) - ROWS_NOT_3_4};
static const struct option_group *const groups_3_4[] = {&group_3_4};
static const struct options_table etcdctl_3_4_table = {
    .program = "etcdctl",
    .summary = "Commands for a server of etcd's API",
    .groups = groups_3_4,
    .group_count = 1,
    .prefixes = etcdctl_prefixes,
};

const struct options_table *ctl_globals_table(enum ctl_style style)
{
    static const struct options_table *const tables[] = {
        [CTL_VIGIL] = &vigil_table,
        [CTL_ETCDCTL_3_7] = &etcdctl_table,
        [CTL_ETCDCTL_3_4] = &etcdctl_3_4_table,
    };
    return tables[style];
}

size_t ctl_flags_offset(void)
{
    return align_up(sizeof(struct ctl_globals), ARENA_ALIGN);
}

/* Whether a list like " keys-only stream " contains the name. */
static bool is_listed(const char *list, const char *name)
{
    char word[96];
    snprintf(word, sizeof(word), " %s ", name);
    return list && strstr(list, word);
}

bool ctl_flag_exists(const struct ctl_command *command, const char *name, enum ctl_style style)
{
    return !is_listed(style == CTL_ETCDCTL_3_4 ? command->flags_not_3_4 : command->flags_only_3_4,
                      name);
}

static void *take(struct arena *arena, size_t bytes)
{
    return xalloc_check(arena_alloc(arena, bytes ? bytes : 1), bytes);
}

/* The command's flags of this style, for a configuration in which its own struct is at `offset`. */
static struct option_group *own_group(const struct ctl_command *command, enum ctl_style style,
                                      size_t offset, struct arena *arena)
{
    struct option *rows = take(arena, command->flag_count * sizeof(*rows));
    size_t count = 0;
    for (size_t i = 0; i < command->flag_count; i++) {
        if (!ctl_flag_exists(command, command->flags[i].name, style))
            continue;
        rows[count] = command->flags[i];
        /* Variables and configuration files have the flags of all commands only. */
        rows[count].flag_only = true;
        /* The option has a place in the command's own struct, which follows the general one. */
        if (rows[count].offset != OPTION_NOWHERE)
            rows[count].offset += offset;
        count++;
    }
    struct option_group *group = take(arena, sizeof(*group));
    *group = (struct option_group){"Flags", rows, count};
    return group;
}

struct options_table *ctl_command_table(const struct ctl_command *command, enum ctl_style style,
                                        struct arena *arena)
{
    const struct options_table *all = ctl_globals_table(style);
    size_t bytes = strlen(all->program) + strlen(command->path) + 2;
    char *program = take(arena, bytes);
    snprintf(program, bytes, "%s %s", all->program, command->path);
    const struct option_group **own = take(arena, (all->group_count + 1) * sizeof(*own));
    /* The command's own flags come first and may have the name of a general one. */
    own[0] = own_group(command, style, ctl_flags_offset(), arena);
    memcpy(own + 1, all->groups, all->group_count * sizeof(*own));
    struct options_table *table = take(arena, sizeof(*table));
    *table = *all;
    table->program = program;
    table->summary = command->summary;
    table->words = *command->words ? command->words : NULL;
    table->groups = own;
    table->group_count = all->group_count + 1;
    return table;
}

struct options_table *ctl_own_table(const struct ctl_command *command, enum ctl_style style,
                                    struct arena *arena)
{
    const struct option_group **one = take(arena, sizeof(*one));
    *one = own_group(command, style, 0, arena);
    struct options_table *table = take(arena, sizeof(*table));
    *table = (struct options_table){
        .program = command->path, .summary = command->summary, .groups = one, .group_count = 1};
    return table;
}

int ctl_format_of(const char *name, enum ctl_style style)
{
    static const char *const names[] = {"simple", "fields", "json", "protobuf", "table", "jsonl"};
    size_t known = style == CTL_VIGIL ? COUNT_OF(names) : CTL_JSONL;
    for (size_t i = 0; i < known; i++)
        if (strcmp(name, names[i]) == 0)
            return (int)i;
    return CTL_UNKNOWN_FORMAT;
}
