/* Flags and words in any order: the syntax of Go's pflag package. */
#include "base/options/words.h"

#include "base/options/options_private.h"

/* One command line while it is read. */
struct reader {
    struct options *options;
    int count, at;
    char *const *args;
    struct error *error;
    bool help;
};

static const struct option *find_letter(const struct options_table *table, char letter,
                                        size_t *ret_place)
{
    const struct option *row;
    for (size_t i = 0; (row = options_row(table, i)); i++) {
        if (row->letter == letter) {
            *ret_place = i;
            return row;
        }
    }
    return NULL;
}

static bool is_switch(const struct option *row)
{
    return row->kind == OPTION_BOOL || row->kind == OPTION_ANY;
}

/* Go's type of the flag has no negative numbers. */
static bool is_unsigned(const struct option *row)
{
    return row->min == 0 && row->max == INT64_MAX;
}

/* Why Go does not accept the value. */
static void describe(const struct option *row, const char *value, enum status why, char *to,
                     size_t bytes)
{
    switch (row->kind) {
    case OPTION_BOOL:
        snprintf(to, bytes, "strconv.ParseBool: parsing \"%.100s\": invalid syntax", value);
        return;
    case OPTION_DURATION:
        if (*value == 0)
            snprintf(to, bytes, "time: invalid duration \"\"");
        else if (strspn(value, "+-.0123456789") == strlen(value))
            snprintf(to, bytes, "time: missing unit in duration \"%.100s\"", value);
        else
            snprintf(to, bytes, "time: invalid duration \"%.100s\"", value);
        return;
    case OPTION_INT:
    case OPTION_SIZE:
        if (why == ST_LIMIT && !is_unsigned(row))
            snprintf(to, bytes, "must be from %lld to %lld", (long long)row->min,
                     (long long)row->max);
        else
            snprintf(to, bytes, "strconv.%s: parsing \"%.100s\": %s",
                     is_unsigned(row) ? "ParseUint" : "ParseInt", value,
                     strspn(value, "0123456789") == strlen(value) && *value ? "value out of range"
                                                                            : "invalid syntax");
        return;
    default:
        snprintf(to, bytes, "must be one of %s", row->choices ? row->choices : "its values");
    }
}

static enum status refuse_value(const struct reader *reader, const struct option *row,
                                const char *value, enum status why)
{
    char reason[192], name[96];
    describe(row, value, why, reason, sizeof(reason));
    if (row->letter)
        snprintf(name, sizeof(name), "-%c, --%s", row->letter, row->name);
    else
        snprintf(name, sizeof(name), "--%s", row->name);
    return error_set(reader->error, ST_INVALID, "invalid argument \"%.100s\" for \"%s\" flag: %s",
                     value, name, reason);
}

static enum status set(struct reader *reader, const struct option *row, size_t place,
                       const char *value)
{
    uint8_t *source = &reader->options->source[place];
    if (row->repeats && *source == OPTION_FROM_FLAG)
        value = options_join(reader->options, row, value);
    if (!value)
        return error_set(reader->error, ST_INVALID, "the values of flag --%s are too long",
                         row->name);
    enum status status = options_store(reader->options, row, value);
    if (status != ST_OK)
        return refuse_value(reader, row, value, status);
    *source = OPTION_FROM_FLAG;
    return ST_OK;
}

/* "--name", "--name=value" or "--name value". */
static enum status read_long(struct reader *reader, const char *word)
{
    const char *text = word + 2;
    const char *equals = strchr(text, '=');
    struct slice name = slice_of(text, equals ? (size_t)(equals - text) : strlen(text));
    if (name.len == 0 || name.ptr[0] == '-')
        return error_set(reader->error, ST_INVALID, "bad flag syntax: %.200s", word);
    size_t place;
    const struct option *row = options_find_place(reader->options->table, name, &place);
    if (!row && slice_equal(name, SLICE_LITERAL("help"))) {
        reader->help = true;
        return ST_OK;
    }
    if (!row)
        return error_set(reader->error, ST_INVALID, "unknown flag: --%.*s", SLICE_ARGS(name));
    if (equals)
        return set(reader, row, place, equals + 1);
    if (is_switch(row))
        return set(reader, row, place, "true");
    if (reader->at == reader->count)
        return error_set(reader->error, ST_INVALID, "flag needs an argument: --%.*s",
                         SLICE_ARGS(name));
    return set(reader, row, place, reader->args[reader->at++]);
}

/* "-w json", "-wjson", "-w=json", "-iw json". */
static enum status read_letters(struct reader *reader, const char *word)
{
    for (const char *at = word + 1; *at; at++) {
        size_t place;
        const struct option *row = find_letter(reader->options->table, *at, &place);
        if (!row && *at == 'h') {
            reader->help = true;
            continue;
        }
        if (!row)
            return error_set(reader->error, ST_INVALID, "unknown shorthand flag: '%c' in -%.100s",
                             *at, at);
        if (at[1] == '=' && at[2])
            return set(reader, row, place, at + 2);
        if (is_switch(row)) {
            TRY(set(reader, row, place, "true"));
            continue;
        }
        if (at[1])
            return set(reader, row, place, at + 1);
        if (reader->at == reader->count)
            return error_set(reader->error, ST_INVALID, "flag needs an argument: '%c' in -%.100s",
                             *at, at);
        return set(reader, row, place, reader->args[reader->at++]);
    }
    return ST_OK;
}

enum status options_parse_words(struct options *options, int count, char *const *args,
                                struct option_words *ret_words, struct error *error)
{
    struct reader reader = {.options = options, .count = count, .args = args, .error = error};
    ret_words->count = 0;
    ret_words->dash = SIZE_MAX;
    while (reader.at < count) {
        const char *word = args[reader.at++];
        if (ret_words->dash != SIZE_MAX || word[0] != '-' || word[1] == 0) {
            ret_words->words[ret_words->count++] = word;
        } else if (strcmp(word, "--") == 0) {
            ret_words->dash = ret_words->count;
        } else {
            TRY(word[1] == '-' ? read_long(&reader, word) : read_letters(&reader, word));
        }
    }
    return reader.help ? ST_END : ST_OK;
}

bool options_flag_takes_next(const struct options_table *table, const char *flag)
{
    size_t place;
    if (flag[0] != '-' || flag[1] == 0 || strchr(flag, '='))
        return false;
    if (flag[1] == '-') {
        const struct option *row = options_find_place(table, slice_from_text(flag + 2), &place);
        return strcmp(flag, "--help") != 0 && (!row || !is_switch(row));
    }
    const struct option *row = find_letter(table, flag[1], &place);
    return flag[2] == 0 && flag[1] != 'h' && (!row || !is_switch(row));
}
