#include "cmd/complete/complete.h"

#include "base/options/words.h"
#include "base/xalloc.h"
#include "cmd/complete/ask.h"
#include "cmd/ctl/globals.h"

#define ETCDCTL_FORMATS "simple|fields|json|table|protobuf"
#define PERMISSION_CHOICES "read|write|readwrite"

/* One word that is completed. */
struct complete {
    const struct complete_commands *others;
    char **words; /* those before it */
    int count;
    struct slice before; /* "--flag=" of the current word, if its value is completed */
    const char *current; /* the rest of it */
    bool files;
    FILE *to;
};

/* -- Candidates -- */

static void offer(void *ctx, struct slice text, const char *help)
{
    struct complete *c = ctx;
    if (!slice_has_prefix(text, slice_from_text(c->current)))
        return;
    fprintf(c->to, "%.*s%.*s", SLICE_ARGS(c->before), SLICE_ARGS(text));
    if (help && *help) {
        /* The first sentence of the help is enough in a list. */
        const char *end = strstr(help, ". ");
        size_t len = end ? (size_t)(end - help) : strlen(help);
        if (len > 0 && help[len - 1] == '.')
            len--;
        fputc('\t', c->to);
        for (size_t i = 0; i < len; i++)
            fputc(help[i] == '\n' || help[i] == '\t' ? ' ' : help[i], c->to);
    }
    fputc('\n', c->to);
}

static void offer_choices(struct complete *c, const char *choices)
{
    struct slice rest = slice_from_text(choices);
    while (rest.len > 0)
        offer(c, slice_cut(&rest, '|'), NULL);
}

static void offer_flags(struct complete *c, const struct options_table *table)
{
    const struct option *row;
    char name[128];
    for (size_t i = 0; (row = options_row(table, i)); i++) {
        if (!row->help || row->alias_of)
            continue;
        snprintf(name, sizeof(name), "--%s", row->name);
        offer(c, slice_from_text(name), row->help);
    }
    offer(c, SLICE_LITERAL("--help"), "Shows the flags");
}

/* -- Names of commands -- */

static struct slice first_word(const char *path)
{
    return slice_of(path, strcspn(path, " "));
}

static const struct complete_command *find_other(const struct complete *c, struct slice name)
{
    for (size_t i = 0; i < c->others->count; i++)
        if (slice_is(name, c->others->all[i].name))
            return &c->others->all[i];
    return NULL;
}

/* Whether a command of this style before this one has the same first word. */
static bool was_offered(const struct complete *c, size_t place, struct slice name)
{
    for (size_t i = 0; i < place; i++)
        if (ctl_exists(ctl_command_at(i), c->others->style) &&
            slice_equal(first_word(ctl_command_at(i)->path), name))
            return true;
    return find_other(c, name) != NULL;
}

static void offer_commands(struct complete *c)
{
    const struct ctl_command *command;
    for (size_t i = 0; i < c->others->count; i++)
        offer(c, slice_from_text(c->others->all[i].name), c->others->all[i].help);
    for (size_t i = 0; (command = ctl_command_at(i)); i++) {
        struct slice name = first_word(command->path);
        if (ctl_exists(command, c->others->style) && !was_offered(c, i, name))
            offer(c, name, name.len == strlen(command->path) ? command->summary : NULL);
    }
}

/* -- Values of flags -- */

static const struct option *find_row(const struct options_table *table, struct slice flag)
{
    const struct option *row;
    if (flag.len > 2 && flag.ptr[1] == '-')
        return options_find(table, slice_sub(flag, 2, flag.len - 2));
    for (size_t i = 0; flag.len == 2 && (row = options_row(table, i)); i++)
        if ((uint8_t)row->letter == flag.ptr[1])
            return row;
    return flag.len > 1 ? options_find(table, slice_sub(flag, 1, flag.len - 1)) : NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool takes_file(const char *flag)
{
    static const char *const ends[] = {"-dir", "-file", "cacert", "cert", "key", "kubeconfig"};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (ends_with(flag, ends[i]))
            return true;
    return false;
}

static void ask(struct complete *c, enum complete_kind kind, const struct ctl_found *found,
                int count)
{
    struct complete_asked asked = {kind, c->others->style, c->current, offer, c};
    if (found->command)
        complete_ask(&asked, found, count, c->words);
}

static void offer_values(struct complete *c, const struct option *row,
                         const struct ctl_found *found, int count)
{
    if (row->kind == OPTION_ENUM)
        offer_choices(c, row->choices);
    else if (row->kind == OPTION_BOOL)
        offer_choices(c, "true|false");
    else if (strcmp(row->name, "write-out") == 0)
        offer_choices(c,
                      c->others->style == CTL_VIGIL ? ETCDCTL_FORMATS "|jsonl" : ETCDCTL_FORMATS);
    else if (strcmp(row->name, "lease") == 0)
        ask(c, COMPLETE_LEASES, found, count);
    else if (strcmp(row->name, "profile") == 0)
        ask(c, COMPLETE_PROFILES, found, count);
    else if (row->kind == OPTION_TEXT)
        c->files = takes_file(row->name);
}

/* "--flag" and then the current word, or "--flag=" at its beginning. False: it is something else.
 */
static bool complete_flag(struct complete *c, const struct options_table *table,
                          const struct ctl_found *found)
{
    const char *last = c->count > 0 ? c->words[c->count - 1] : "";
    const char *equals = c->current[0] == '-' ? strchr(c->current, '=') : NULL;
    struct slice flag = slice_from_text(last);
    int count = c->count;
    if (equals) {
        flag = slice_of(c->current, (size_t)(equals - c->current));
        c->before = slice_of(c->current, flag.len + 1);
        c->current = equals + 1;
    } else if (options_flag_takes_next(table, last)) {
        count--;
    } else if (c->current[0] == '-') {
        offer_flags(c, table);
        return true;
    } else {
        return false;
    }
    const struct option *row = find_row(table, flag);
    if (row && row->help)
        offer_values(c, row, found, count);
    return true;
}

/* -- Words -- */

/* How many words there are besides the name and the flags. */
static int count_words(const struct complete *c, const struct options_table *table,
                       const struct ctl_found *found, bool *ret_dash)
{
    int words = 0;
    *ret_dash = false;
    for (int i = 0; i < c->count; i++) {
        if (i == found->name_at[0] || i == found->name_at[1])
            continue;
        if (!*ret_dash && strcmp(c->words[i], "--") == 0)
            *ret_dash = true;
        else if (*ret_dash || c->words[i][0] != '-')
            words++;
        else if (options_flag_takes_next(table, c->words[i]))
            i++;
    }
    return words;
}

/* "range_end" is the second of "<key> [range_end]". */
static struct slice placeholder(const char *words, int place)
{
    for (const char *at = words; (at = strpbrk(at, "<[")); at++) {
        const char *end = strchr(at, *at == '<' ? '>' : ']');
        if (!end)
            break;
        if (place-- == 0)
            return slice_of(at + 1, (size_t)(end - at) - 1);
        at = end;
    }
    return slice_of(NULL, 0);
}

static void offer_words(struct complete *c, struct slice name, const struct ctl_found *found)
{
    static const struct {
        const char *name;
        enum complete_kind kind;
    } kinds[] = {
        {"key", COMPLETE_KEYS},         {"key or prefix", COMPLETE_KEYS},
        {"prefix", COMPLETE_KEYS},      {"range_end", COMPLETE_KEYS},
        {"endkey", COMPLETE_KEYS},      {"leaseID", COMPLETE_LEASES},
        {"user name", COMPLETE_USERS},  {"role name", COMPLETE_ROLES},
        {"memberID", COMPLETE_MEMBERS}, {"transferee-member-id", COMPLETE_MEMBERS},
    };
    const char *path = found->command->path;
    if (slice_is(name, "filename"))
        c->files = true;
    else if (slice_is(name, "permission type"))
        offer_choices(c, PERMISSION_CHOICES);
    else if (strncmp(path, "profile ", strlen("profile ")) == 0)
        ask(c, COMPLETE_PROFILES, found, c->count);
    for (size_t i = 0; i < COUNT_OF(kinds) && !ends_with(path, " add"); i++)
        if (slice_is(name, kinds[i].name))
            ask(c, kinds[i].kind, found, c->count);
}

static void complete_client(struct complete *c, const struct ctl_found *found)
{
    struct arena arena;
    bool dash;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct options_table *table = ctl_command_table(found->command, c->others->style, &arena);
    int words = count_words(c, table, found, &dash);
    if (dash || !complete_flag(c, table, found))
        offer_words(c, placeholder(found->command->words, words), found);
    arena_fini(&arena);
}

static void complete_names(struct complete *c, const struct ctl_found *found)
{
    if (found->name_at[0] < 0) {
        offer_commands(c);
    } else if (found->family && found->name_at[1] < 0) {
        const struct ctl_command *command;
        for (size_t i = 0; (command = ctl_command_at(i)); i++)
            if (ctl_exists(command, c->others->style) && ctl_is_of(command, found->family))
                offer(c, slice_from_text(command->path + strlen(found->family) + 1),
                      command->summary);
    }
}

/* `vigil help lease grant` has the words of a command line. */
static void complete_help(struct complete *c, int at)
{
    c->words += at + 1;
    c->count -= at + 1;
    struct ctl_found found = ctl_find(c->count, c->words, c->others->style);
    complete_names(c, &found);
}

static void complete_other(struct complete *c, const struct complete_command *other,
                           const struct ctl_found *found)
{
    static const struct options_table none = {.program = ""};
    int at = found->name_at[0];
    bool dash;
    if (strcmp(other->name, "help") == 0) {
        complete_help(c, at);
        return;
    }
    const struct options_table *table = other->table ? other->table : &none;
    struct ctl_found name = {.name_at = {at, -1}};
    int words = count_words(c, table, &name, &dash);
    if (complete_flag(c, table, found) || !other->words)
        return;
    if (strcmp(other->words, "FILE") == 0 || words > 0)
        c->files = true;
    else
        offer_choices(c, other->words);
}

static void complete(struct complete *c)
{
    struct ctl_found found = ctl_find(c->count, c->words, c->others->style);
    const char *first = found.name_at[0] < 0 ? NULL : c->words[found.name_at[0]];
    if (found.command) {
        complete_client(c, &found);
        return;
    }
    if (!first && complete_flag(c, ctl_globals_table(c->others->style), &found))
        return;
    if (c->current[0] != '-')
        complete_names(c, &found);
    const struct complete_command *other = first ? find_other(c, slice_from_text(first)) : NULL;
    if (other)
        complete_other(c, other, &found);
}

void complete_write(const struct complete_commands *others, int count, char **args, FILE *to)
{
    if (count == 0)
        return;
    struct complete c = {
        .others = others, .words = args, .count = count - 1, .current = args[count - 1], .to = to};
    complete(&c);
    fprintf(to, ":%s\n", c.files ? "f" : "");
}
