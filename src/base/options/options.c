#include "base/options/options_private.h"

#include <stdlib.h>

/* -- values -- */

/* Storage for a value that is not kept. */
union nowhere {
    bool truth;
    int choice;
    int64_t number;
    uint64_t bytes;
    const char *text;
};

static bool in_range(const struct option *row, int64_t value)
{
    return (row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max);
}

static enum status parse_enum(const struct option *row, const char *text, int *ret_place)
{
    int place = 0;
    for (const char *at = row->choices; at; place++) {
        size_t len = strcspn(at, "|");
        if (strlen(text) == len && memcmp(at, text, len) == 0) {
            *ret_place = place;
            return ST_OK;
        }
        at = at[len] ? at + len + 1 : NULL;
    }
    return ST_INVALID;
}

enum status options_store(const struct options *options, const struct option *row, const char *text)
{
    union nowhere nowhere;
    bool kept = row->offset != OPTION_NOWHERE;
    void *field = kept ? (void *)((char *)options->config + row->offset) : &nowhere;
    int64_t number;
    uint64_t bytes;
    switch (row->kind) {
    case OPTION_BOOL:
        return option_value_bool(text, field);
    case OPTION_INT:
    case OPTION_DURATION:
        TRY(row->kind == OPTION_INT ? option_value_int(text, &number)
                                    : option_value_duration(text, &number));
        if (!in_range(row, number))
            return ST_LIMIT;
        *(int64_t *)field = number;
        return ST_OK;
    case OPTION_SIZE:
        TRY(option_value_size(text, &bytes));
        if (!in_range(row, (int64_t)bytes))
            return ST_LIMIT;
        *(uint64_t *)field = bytes;
        return ST_OK;
    case OPTION_ENUM:
        return parse_enum(row, text, field);
    case OPTION_TEXT:
    case OPTION_LIST:
        *(const char **)field = text;
        return ST_OK;
    case OPTION_ANY:
        return ST_OK;
    }
    return ST_INTERNAL;
}

static const char *expectation(const struct option *row)
{
    switch (row->kind) {
    case OPTION_BOOL:
        return "true or false";
    case OPTION_INT:
        return "a number";
    case OPTION_SIZE:
        return "a number of bytes, like 1048576 or 64MiB";
    case OPTION_DURATION:
        return "a duration, like 10s, 1m30s or 100ms";
    case OPTION_ENUM:
        return row->choices;
    default:
        return "a text";
    }
}

static enum status value_error(const struct option *row, const char *text, const char *where,
                               enum status why, struct error *error)
{
    if (why == ST_LIMIT)
        return error_set(error, ST_INVALID,
                         "invalid value \"%s\" for %s: must be from %lld to %lld", text, where,
                         (long long)row->min, (long long)row->max);
    return error_set(error, ST_INVALID, "invalid value \"%s\" for %s: expected %s", text, where,
                     expectation(row));
}

/* -- rows -- */

const struct option *options_row(const struct options_table *table, size_t place)
{
    for (size_t g = 0; g < table->group_count; g++) {
        if (place < table->groups[g]->count)
            return &table->groups[g]->rows[place];
        place -= table->groups[g]->count;
    }
    return NULL;
}

/* NULL: no row has this name. */
static const struct option *find_name(const struct options_table *table, struct slice name,
                                      size_t *ret_place)
{
    const struct option *row;
    for (size_t i = 0; (row = options_row(table, i)); i++) {
        if (slice_equal(slice_from_text(row->name), name)) {
            *ret_place = i;
            return row;
        }
    }
    return NULL;
}

const struct option *options_find_place(const struct options_table *table, struct slice name,
                                        size_t *ret_place)
{
    const struct option *row = find_name(table, name, ret_place);
    if (row && row->alias_of) {
        row = find_name(table, slice_from_text(row->alias_of), ret_place);
        assert(row && !row->alias_of);
    }
    return row;
}

const struct option *options_find(const struct options_table *table, struct slice name)
{
    size_t place;
    return options_find_place(table, name, &place);
}

void options_init(struct options *options, const struct options_table *table, void *config)
{
    *options = (struct options){.table = table, .config = config};
    const struct option *row;
    for (size_t i = 0; (row = options_row(table, i)); i++) {
        assert(i < OPTIONS_MAX);
        enum status status = row->alias_of ? ST_OK : options_store(options, row, row->fallback);
        assert(status == ST_OK);
    }
}

enum option_source options_source(const struct options *options, const char *name)
{
    size_t place;
    const struct option *row = options_find_place(options->table, slice_from_text(name), &place);
    assert(row);
    return options->source[place];
}

enum status options_set(struct options *options, const char *name, const char *value,
                        enum option_source source, struct error *error)
{
    size_t place;
    const struct option *row = options_find_place(options->table, slice_from_text(name), &place);
    if (!row)
        return error_set(error, ST_NOT_FOUND, "no such setting: %s", name);
    enum status status = options_store(options, row, value);
    if (status != ST_OK)
        return value_error(row, value, name, status, error);
    options->source[place] = (uint8_t)source;
    return ST_OK;
}

/* -- the command line -- */

static enum status unknown_flag(const struct options *options, struct slice name,
                                struct error *error)
{
    const char *nearest = options_nearest(options->table, name);
    if (nearest)
        return error_set(error, ST_INVALID,
                         "flag provided but not defined: -%.*s (did you mean --%s?)",
                         SLICE_ARGS(name), nearest);
    return error_set(error, ST_INVALID,
                     "flag provided but not defined: -%.*s (see %s --help for all of them)",
                     SLICE_ARGS(name), options->table->program);
}

static bool asks_for_help(struct slice name)
{
    return slice_equal(name, SLICE_LITERAL("h")) || slice_equal(name, SLICE_LITERAL("help"));
}

const char *options_join(struct options *options, const struct option *row, const char *value)
{
    const char *before;
    memcpy(&before, (const char *)options->config + row->offset, sizeof(before));
    char *to = options->joined + options->joined_len;
    size_t room = sizeof(options->joined) - options->joined_len;
    int len = snprintf(to, room, "%s,%s", before, value);
    if (len < 0 || (size_t)len >= room)
        return NULL;
    options->joined_len += (size_t)len + 1;
    return to;
}

/* args[*at] is "-name", "--name" or either with "=value". Moves *at behind what it consumed. */
static enum status parse_flag(struct options *options, int count, char *const *args, int *at,
                              struct error *error)
{
    const char *word = args[(*at)++];
    const char *name_text = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name_text, '=');
    struct slice name =
        slice_of(name_text, equals ? (size_t)(equals - name_text) : strlen(name_text));
    if (name.len == 0 || name.ptr[0] == '-')
        return error_set(error, ST_INVALID, "bad flag syntax: %s", word);
    size_t place;
    const struct option *row = options_find_place(options->table, name, &place);
    if (!row)
        return asks_for_help(name) ? ST_END : unknown_flag(options, name, error);

    const char *value = equals ? equals + 1 : "true";
    if (!equals && row->kind != OPTION_BOOL && row->kind != OPTION_ANY) {
        if (*at == count)
            return error_set(error, ST_INVALID, "flag needs an argument: -%s", row->name);
        value = args[(*at)++];
    }
    if (row->repeats && options->source[place] == OPTION_FROM_FLAG)
        value = options_join(options, row, value);
    if (!value)
        return error_set(error, ST_INVALID, "the values of flag -%s are too long", row->name);
    char where[128];
    snprintf(where, sizeof(where), "flag -%s", row->name);
    enum status status = options_store(options, row, value);
    if (status != ST_OK)
        return value_error(row, value, where, status, error);
    options->source[place] = OPTION_FROM_FLAG;
    return ST_OK;
}

enum status options_parse_args(struct options *options, int count, char *const *args, int *ret_rest,
                               struct error *error)
{
    int at = 0;
    while (at < count) {
        const char *word = args[at];
        if (word[0] != '-' || word[1] == 0)
            break;
        if (strcmp(word, "--") == 0) {
            at++;
            break;
        }
        TRY(parse_flag(options, count, args, &at, error));
    }
    *ret_rest = at;
    return ST_OK;
}

/* -- the environment -- */

static const char *const usual_prefixes[] = {"VIGIL_", "ETCD_", NULL};

/* The row that a variable's name (without prefix, up to len) belongs to. */
static const struct option *row_of_variable(const struct options_table *table, const char *name,
                                            size_t len, size_t *ret_place)
{
    char flag[128];
    if (len >= sizeof(flag))
        return NULL;
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (c >= 'a' && c <= 'z')
            return NULL;
        flag[i] = (char)(c == '_' ? '-' : c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    return options_find_place(table, slice_of(flag, len), ret_place);
}

static void tell(struct option_listener listener, enum option_notice notice, const char *variable,
                 size_t name_len, bool secret)
{
    char name[160];
    snprintf(name, sizeof(name), "%.*s", (int)name_len, variable);
    if (listener.fn)
        listener.fn(listener.ctx, notice, name,
                    secret ? OPTION_SECRET_SHOWN : variable + name_len + 1);
}

static enum status use_variable(struct options *options, const char *variable, const char *prefix,
                                struct option_listener listener, struct error *error)
{
    size_t name_len = strcspn(variable, "=");
    size_t prefix_len = strlen(prefix);
    if (name_len < prefix_len || strncmp(variable, prefix, prefix_len) != 0 || !variable[name_len])
        return ST_OK;
    size_t place;
    const struct option *row =
        row_of_variable(options->table, variable + prefix_len, name_len - prefix_len, &place);
    if (!row) {
        tell(listener, OPTION_ENV_UNKNOWN, variable, name_len, false);
        return ST_OK;
    }
    const char *value = variable + name_len + 1;
    uint8_t *source = &options->source[place];
    if (*value == 0) /* an empty variable counts as not set */
        return ST_OK;
    if (row->flag_only) {
        tell(listener, OPTION_ENV_SPECIAL, variable, name_len, row->secret);
        return ST_OK;
    }
    if (*source != OPTION_FROM_DEFAULT) {
        tell(listener, OPTION_ENV_SHADOWED, variable, name_len, row->secret);
        return ST_OK;
    }
    enum status status = options_store(options, row, value);
    if (status != ST_OK) {
        char where[160];
        snprintf(where, sizeof(where), "%.*s", (int)name_len, variable);
        return value_error(row, value, where, status, error);
    }
    *source = OPTION_FROM_ENVIRONMENT;
    tell(listener, OPTION_ENV_USED, variable, name_len, row->secret);
    return ST_OK;
}

enum status options_parse_environment(struct options *options, char *const *variables,
                                      struct option_listener listener, struct error *error)
{
    for (size_t i = 0; i < OPTIONS_MAX; i++)
        if (options->source[i] == OPTION_FROM_ENVIRONMENT)
            options->source[i] = OPTION_FROM_DEFAULT;
    const char *const *prefix =
        options->table->prefixes ? options->table->prefixes : usual_prefixes;
    for (; *prefix; prefix++)
        for (char *const *variable = variables; *variable; variable++)
            TRY(use_variable(options, *variable, *prefix, listener, error));
    return ST_OK;
}

static bool is_empty_variable(const struct options_table *table, const char *variable,
                              const char *prefix, const char *flag)
{
    size_t len = strcspn(variable, "="), prefix_len = strlen(prefix), place;
    if (strncmp(variable, prefix, prefix_len) != 0 || strcmp(variable + len, "=") != 0)
        return false;
    const struct option *row =
        row_of_variable(table, variable + prefix_len, len - prefix_len, &place);
    return row && strcmp(row->name, flag) == 0;
}

bool options_variable_is_empty(const struct options_table *table, char *const *variables,
                               const char *flag)
{
    const char *const *prefix = table->prefixes ? table->prefixes : usual_prefixes;
    for (; *prefix; prefix++)
        for (char *const *variable = variables; *variable; variable++)
            if (is_empty_variable(table, *variable, *prefix, flag))
                return true;
    return false;
}

/* -- Suggestions for mistyped names -- */

enum { NAME_MAX_COMPARED = 64 };

/* The number of letters to add, remove, change or swap with their neighbour. */
static unsigned distance(struct slice a, struct slice b)
{
    unsigned rows[3][NAME_MAX_COMPARED + 1];
    if (a.len > NAME_MAX_COMPARED || b.len > NAME_MAX_COMPARED)
        return UINT32_MAX;
    for (unsigned k = 0; k <= b.len; k++)
        rows[0][k] = k;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *older = rows[(i + 1) % 3];
        now[0] = i;
        for (unsigned k = 1; k <= b.len; k++) {
            unsigned best = before[k - 1] + (a.ptr[i - 1] != b.ptr[k - 1]);
            best = before[k] + 1 < best ? before[k] + 1 : best;
            best = now[k - 1] + 1 < best ? now[k - 1] + 1 : best;
            if (i > 1 && k > 1 && a.ptr[i - 1] == b.ptr[k - 2] && a.ptr[i - 2] == b.ptr[k - 1] &&
                older[k - 2] + 1 < best)
                best = older[k - 2] + 1;
            now[k] = best;
        }
    }
    return rows[a.len % 3][b.len];
}

const char *options_nearest(const struct options_table *table, struct slice name)
{
    const char *nearest = NULL;
    unsigned nearest_distance = (unsigned)size_max(2, name.len / 3) + 1;
    const struct option *row;
    for (size_t i = 0; (row = options_row(table, i)); i++) {
        if (!row->help && !row->ignored && !row->alias_of)
            continue;
        unsigned d = distance(name, slice_from_text(row->name));
        if (d < nearest_distance) {
            nearest = row->name;
            nearest_distance = d;
        }
    }
    return nearest;
}
