#include "cmd/ctl/globals.h"

#include "base/xalloc.h"

#define OFFSET(field) offsetof(struct ctl_globals, field)

static const struct option etcdctl_rows[] = {
    {.name = "endpoints",
     .kind = OPTION_LIST,
     .fallback = "127.0.0.1:2379",
     .help = "The servers, separated by commas. The first that can be reached is used.",
     .repeats = true,
     .offset = OFFSET(endpoints)},
    {.name = "write-out",
     .letter = 'w',
     .kind = OPTION_TEXT,
     .fallback = "simple",
     .help = "The format of the output: simple, fields, json, protobuf or table.",
     .offset = OFFSET(write_out)},
    {.name = "hex",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Show keys, values and ids in hexadecimal.",
     .offset = OFFSET(hex)},
    {.name = "command-timeout",
     .kind = OPTION_DURATION,
     .fallback = "5s",
     .help = "How long a command that does not wait for anything may take.",
     .offset = OFFSET(command_timeout_ns)},
    {.name = "dial-timeout",
     .kind = OPTION_DURATION,
     .fallback = "2s",
     .help = "How long one attempt to connect may take.",
     .offset = OFFSET(dial_timeout_ns)},
    {.name = "keepalive-time",
     .kind = OPTION_DURATION,
     .fallback = "2s",
     .help = "After this time without input the client asks whether the server is alive.",
     .offset = OFFSET(keepalive_ns)},
    {.name = "keepalive-timeout",
     .kind = OPTION_DURATION,
     .fallback = "6s",
     .help = "A connection without an answer for this long is given up.",
     .offset = OFFSET(keepalive_timeout_ns)},
    {.name = "user",
     .kind = OPTION_TEXT,
     .fallback = "",
     .secret = true,
     .help = "NAME or NAME:PASSWORD. Without a password the command asks for it.",
     .offset = OFFSET(user)},
    {.name = "password",
     .kind = OPTION_TEXT,
     .fallback = "",
     .secret = true,
     .help = "The password, if --user does not contain it.",
     .offset = OFFSET(password)},
    {.name = "cacert",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "A file of certificates that may have signed the server's; uses TLS.",
     .offset = OFFSET(ca_file)},
    {.name = "cert",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The client's certificate, a file; uses TLS.",
     .offset = OFFSET(cert_file)},
    {.name = "key",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "The key of that certificate, a file.",
     .offset = OFFSET(key_file)},
    {.name = "insecure-transport",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "Connect without TLS unless an endpoint or another flag asks for it.",
     .offset = OFFSET(insecure_transport)},
    {.name = "insecure-skip-tls-verify",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Accept every certificate of a server: only for tests.",
     .offset = OFFSET(insecure_skip_verify)},
    {.name = "discovery-srv",
     .letter = 'd',
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "A domain whose SRV records name the endpoints.",
     .offset = OFFSET(discovery_srv)},
    {.name = "discovery-srv-name",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "Appended to the service whose SRV records are looked up.",
     .offset = OFFSET(discovery_srv_name)},
    {.name = "insecure-discovery",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "Accept endpoints without TLS from SRV records.",
     .offset = OFFSET(insecure_discovery)},
    {.name = "debug",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Say on standard error what the client does.",
     .offset = OFFSET(debug)},
    {.name = "max-request-bytes",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "The largest request that is sent; 0 is 2 MiB.",
     .offset = OFFSET(max_request_bytes)},
    {.name = "max-recv-bytes",
     .kind = OPTION_INT,
     .fallback = "0",
     .help = "The largest response that is accepted; 0 is 2 GiB.",
     .offset = OFFSET(max_receive_bytes)},
    {.name = "auth-jwt-token",
     .kind = OPTION_TEXT,
     .fallback = "",
     .secret = true,
     .help = "A token to use instead of a user and a password.",
     .offset = OFFSET(token)},
};

enum { ROWS_NOT_3_4 = 3 }; /* max-request-bytes, max-recv-bytes, auth-jwt-token */

static const struct option our_rows[] = {
    {.name = "profile",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "Endpoints, certificates and user of this name in the file of profiles.",
     .offset = OFFSET(profile)},
    {.name = "decode",
     .kind = OPTION_ENUM,
     .choices = "auto|raw|text|json|k8s",
     .fallback = "auto",
     .help = "How values are shown.",
     .offset = OFFSET(decode)},
    {.name = "color",
     .kind = OPTION_ENUM,
     .choices = "auto|always|never",
     .fallback = "auto",
     .help = "Whether the output has colours; auto: on a terminal, unless NO_COLOR is set.",
     .offset = OFFSET(colour)},
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
        rows[count].flag_only = true;
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
