#include "cmd/serve/config/config_file.h"

#include "base/memory/arena.h"
#include "base/xalloc.h"
#include "io/whole_file.h"

#include <stdlib.h>
#include <yaml.h>

enum { KEY_BYTES_MAX = 128, VALUES_BYTES_MAX = 4 * CONFIG_FILE_BYTES_MAX };

struct config_file {
    char *name;
    char *text;
    size_t len;
    struct arena values; /* what options borrow */
};

/* One pass over the file. */
struct pass {
    struct config_file *file;
    struct options *options;
    struct config_file_listener listener;
    struct error *error;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    unsigned depth;
};

/* -- Names -- */

/* The blocks of etcd's file. A key that is not listed gets the prefix of its block. */
static const struct {
    const char *block;
    const char *prefix; /* NULL: only the keys below are known */
} blocks[] = {
    {"client-transport-security", NULL},
    {"peer-transport-security", "peer-"},
    {"socket-options", "socket-"},
    {"discovery-config", "discovery-"},
};

static const struct {
    const char *block, *key, *flag;
} nested[] = {
    {"client-transport-security", "cert-file", "cert-file"},
    {"client-transport-security", "key-file", "key-file"},
    {"client-transport-security", "client-cert-file", "client-cert-file"},
    {"client-transport-security", "client-key-file", "client-key-file"},
    {"client-transport-security", "client-cert-auth", "client-cert-auth"},
    {"client-transport-security", "trusted-ca-file", "trusted-ca-file"},
    {"client-transport-security", "auto-tls", "auto-tls"},
    {"client-transport-security", "allowed-cn", "client-cert-allowed-cn"},
    {"client-transport-security", "allowed-hostname", "client-cert-allowed-hostname"},
    {"client-transport-security", "crl-file", "client-crl-file"},
    {"peer-transport-security", "allowed-cn", "peer-cert-allowed-cn"},
    {"peer-transport-security", "allowed-hostname", "peer-cert-allowed-hostname"},
};

static bool is_block(const char *key)
{
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        if (strcmp(blocks[i].block, key) == 0)
            return true;
    return false;
}

/* The flag for a key of a block; "" when there is no such flag. */
static void flag_name(const char *block, const char *key, char flag[KEY_BYTES_MAX])
{
    const char *prefix = block ? NULL : "";
    for (size_t i = 0; block && i < COUNT_OF(nested); i++) {
        if (strcmp(nested[i].block, block) == 0 && strcmp(nested[i].key, key) == 0) {
            snprintf(flag, KEY_BYTES_MAX, "%s", nested[i].flag);
            return;
        }
    }
    for (size_t i = 0; block && i < COUNT_OF(blocks); i++)
        if (strcmp(blocks[i].block, block) == 0)
            prefix = blocks[i].prefix;
    flag[0] = 0;
    if (prefix && strlen(prefix) + strlen(key) < KEY_BYTES_MAX)
        snprintf(flag, KEY_BYTES_MAX, "%s%s", prefix, key);
}

/* -- Events -- */

static size_t line_of(const struct pass *pass)
{
    return pass->event.start_mark.line + 1;
}

static enum status wrong(struct pass *pass, const char *what)
{
    return error_set(pass->error, ST_INVALID, "%.300s: yaml: line %zu: %s", pass->file->name,
                     line_of(pass), what);
}

static enum status next(struct pass *pass)
{
    yaml_event_delete(&pass->event);
    if (yaml_parser_parse(&pass->parser, &pass->event))
        return ST_OK;
    const yaml_parser_t *p = &pass->parser;
    return error_set(pass->error, ST_INVALID, "%.300s: yaml: line %zu: %s", pass->file->name,
                     p->problem_mark.line + 1, p->problem ? p->problem : "not YAML");
}

/* A copy that ends with a zero, which the text itself may not hold. */
static enum status dup_scalar(struct pass *pass, const char **ret_text)
{
    const char *value = (const char *)pass->event.data.scalar.value;
    size_t len = pass->event.data.scalar.length;
    if (memchr(value, 0, len))
        return wrong(pass, "a zero byte in a text");
    char *copy = arena_alloc(&pass->file->values, len + 1);
    if (!copy)
        return wrong(pass, "too many values");
    memcpy(copy, value, len);
    copy[len] = 0;
    *ret_text = copy;
    return ST_OK;
}

/* Skips the value of an unknown key. */
static enum status skip(struct pass *pass)
{
    unsigned open = 0;
    for (;;) {
        yaml_event_type_t type = pass->event.type;
        if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
            open++;
        if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
            open--;
        /* The parser's own state grows with the depth, also in values that are skipped. */
        if (pass->depth + open > CONFIG_FILE_DEPTH_MAX)
            return wrong(pass, "nested too deep");
        if (open == 0)
            return ST_OK;
        TRY(next(pass));
    }
}

/* -- Values -- */

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static bool is_null(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    return is_one_of(text, words, COUNT_OF(words));
}

/* YAML has more words for a truth value than flags have. */
static const char *truth(const char *text)
{
    static const char *const yes[] = {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"};
    static const char *const no[] = {"n", "N", "no", "No", "NO", "off", "Off", "OFF"};
    if (is_one_of(text, yes, COUNT_OF(yes)))
        return "true";
    return is_one_of(text, no, COUNT_OF(no)) ? "false" : text;
}

/* A number alone counts nanoseconds. */
static enum status duration(struct pass *pass, const char **text)
{
    int64_t ns;
    /* Go decodes a time.Duration from YAML or JSON as a number of nanoseconds. */
    if (option_value_int(*text, &ns) != ST_OK)
        return ST_OK;
    char *unit = arena_alloc(&pass->file->values, 32);
    if (!unit)
        return wrong(pass, "too many values");
    snprintf(unit, 32, "%lldns", (long long)ns);
    *text = unit;
    return ST_OK;
}

static enum status set(struct pass *pass, const struct option *row, const char *text, size_t line)
{
    struct error why;
    if (row->kind == OPTION_DURATION)
        TRY(duration(pass, &text));
    if (row->kind == OPTION_BOOL)
        text = truth(text);
    if (options_set(pass->options, row->name, text, OPTION_FROM_FILE, &why) == ST_OK)
        return ST_OK;
    return error_set(pass->error, ST_INVALID, "%.300s: yaml: line %zu: %.400s", pass->file->name,
                     line, why.text);
}

/* [a, b] becomes "a,b". The current event begins it. */
static enum status set_list(struct pass *pass, const struct option *row)
{
    size_t line = line_of(pass), len = 0;
    char *joined = arena_alloc(&pass->file->values, pass->file->len + 1);
    if (!joined)
        return wrong(pass, "too many values");
    for (;;) {
        const char *item;
        TRY(next(pass));
        if (pass->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (pass->event.type != YAML_SCALAR_EVENT)
            return wrong(pass, "a list of texts is expected");
        TRY(dup_scalar(pass, &item));
        size_t item_len = strlen(item);
        if (len + item_len + 1 > pass->file->len) /* escapes only shorten, so never */
            return wrong(pass, "the list is too long");
        if (len)
            joined[len++] = ',';
        memcpy(joined + len, item, item_len);
        len += item_len;
    }
    joined[len] = 0;
    return set(pass, row, joined, line);
}

static enum status read_mapping(struct pass *pass, const char *block);

static enum status set_value(struct pass *pass, const struct option *row)
{
    if (pass->event.type == YAML_SEQUENCE_START_EVENT)
        return set_list(pass, row);
    if (pass->event.type != YAML_SCALAR_EVENT)
        return wrong(pass, "a text, a number or a list is expected");
    const char *text;
    size_t line = line_of(pass);
    bool plain = pass->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    TRY(dup_scalar(pass, &text));
    /* In quotes, null and the empty text are values. Without quotes they leave the default in
     * place. */
    return plain && is_null(text) ? ST_OK : set(pass, row, text, line);
}

static enum status read_value(struct pass *pass, const char *block, const char *key, size_t line)
{
    char flag[KEY_BYTES_MAX];
    TRY(next(pass));
    /* An alias repeats its anchor's content, and nested ones would let a small file become
     * arbitrarily large. */
    if (pass->event.type == YAML_ALIAS_EVENT)
        return wrong(pass, "aliases are not read");
    if (!block && is_block(key) && pass->event.type == YAML_MAPPING_START_EVENT)
        return read_mapping(pass, key);
    flag_name(block, key, flag);
    const struct option *row = options_find(pass->options->table, slice_from_text(flag));
    if (row && !row->flag_only)
        return set_value(pass, row);
    /* etcd ignores unknown keys, too. They are logged, since a misspelled key has no other
     * effect. */
    if (pass->listener.fn)
        pass->listener.fn(pass->listener.ctx, key, line);
    return skip(pass);
}

/* The current event begins it. */
static enum status read_mapping(struct pass *pass, const char *block)
{
    pass->depth++;
    for (;;) {
        const char *key;
        TRY(next(pass));
        if (pass->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (pass->event.type != YAML_SCALAR_EVENT)
            return wrong(pass, "the name of a setting is expected");
        size_t line = line_of(pass);
        TRY(dup_scalar(pass, &key));
        TRY(read_value(pass, block, key, line));
    }
    pass->depth--;
    return ST_OK;
}

/* The one document of the file, which may be empty. */
static enum status read_document(struct pass *pass)
{
    TRY(next(pass)); /* the stream begins */
    TRY(next(pass));
    if (pass->event.type == YAML_STREAM_END_EVENT)
        return ST_OK;
    TRY(next(pass));
    bool nothing = pass->event.type == YAML_SCALAR_EVENT && pass->event.data.scalar.length == 0;
    if (pass->event.type == YAML_MAPPING_START_EVENT)
        TRY(read_mapping(pass, NULL));
    else if (!nothing)
        return wrong(pass, "settings are expected, each as NAME: VALUE");
    /* A line with less indentation ends the settings; anything after it must be an error. */
    TRY(next(pass));
    TRY(next(pass));
    return pass->event.type == YAML_STREAM_END_EVENT
               ? ST_OK
               : wrong(pass, "a second document, which would be ignored");
}

enum status config_file_apply(struct config_file *file, struct options *options,
                              struct config_file_listener listener, struct error *error)
{
    struct pass pass = {.file = file, .options = options, .listener = listener, .error = error};
    if (!yaml_parser_initialize(&pass.parser))
        return error_set(error, ST_NOMEM, "%.300s: no memory to read it", file->name);
    yaml_parser_set_input_string(&pass.parser, (const unsigned char *)file->text, file->len);
    enum status status = read_document(&pass);
    yaml_event_delete(&pass.event);
    yaml_parser_delete(&pass.parser);
    return status;
}

/* -- The file -- */

enum status config_file_of(const char *name, struct slice text, struct config_file **ret_file,
                           struct error *error)
{
    if (text.len > CONFIG_FILE_BYTES_MAX)
        return error_set(error, ST_LIMIT, "%.300s: longer than %d bytes", name,
                         CONFIG_FILE_BYTES_MAX);
    struct config_file *file = xcalloc(1, sizeof(*file));
    file->name = xalloc_check(strdup(name), strlen(name));
    file->text = xmalloc(text.len + 1);
    slice_copy(file->text, text);
    file->len = text.len;
    arena_init(&file->values, NULL, 0, VALUES_BYTES_MAX);
    *ret_file = file;
    return ST_OK;
}

enum status config_file_open(const char *path, struct config_file **ret_file, struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(whole_file_read(path, WHOLE_FILE_ANY, CONFIG_FILE_BYTES_MAX, &text, error));
    return config_file_of(path, buf_slice(&text), ret_file, error);
}

void config_file_close(struct config_file *file)
{
    if (!file)
        return;
    arena_fini(&file->values);
    free(file->name);
    free(file->text);
    free(file);
}
