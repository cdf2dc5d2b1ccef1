/*
 * The command txn: a transaction as text from standard input, in three parts that each end with an
 * empty line:
 *
 *     mod("key1") > "0"               conditions: version, create, mod, value or lease
 *
 *     put key1 "overwritten"          requests if all of them hold: get, put or del, with the
 *                                     flags of these commands
 *     put key1 "created"              requests if one of them does not
 */
#include "cmd/ctl/kv/kv.h"

#include "base/options/words.h"
#include "base/xalloc.h"
#include "cmd/ctl/find.h"
#include "cmd/ctl/globals.h"
#include "cmd/ctl/kv/words.h"

#include <ctype.h>

/* -- lines -- */

/* The next line without spaces at its ends, in the arena. False: the input has ended. An incomplete
 * last line does not count, as in etcdctl. */
static bool read_line(struct ctl *ctl, struct slice *ret_line)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len = getline(&line, &room, stdin);
    if (len <= 0 || line[len - 1] != '\n') {
        free(line);
        return false;
    }
    const char *from = line;
    while (from < line + len && isspace((unsigned char)*from))
        from++;
    while (line + len > from && isspace((unsigned char)line[len - 1]))
        line[--len] = 0;
    size_t bytes = (size_t)(line + len - from) + 1;
    enum status status = arena_dup(ctl->arena, slice_of(from, bytes), ret_line);
    free(line);
    xalloc_check(status == ST_OK ? ret_line : NULL, bytes);
    ret_line->len--;
    return true;
}

/* -- conditions -- */

/* target("key") op "value" */
struct condition {
    char target[32], op[32];
    struct slice key, value;
};

static const char *skip_spaces(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* Returns how many of key, op and value there are. */
static unsigned split_condition(struct ctl *ctl, const char *rest, const char *end,
                                struct condition *condition)
{
    const char *at = skip_spaces(rest);
    if (!line_quoted(ctl->arena, &at, end, &condition->key))
        return 0;
    if (*at != ')' || (at[1] != ' ' && at[1] != '\t'))
        return 1;
    at = skip_spaces(at + 1);
    size_t len = strcspn(at, " \t");
    if (len == 0)
        return 1;
    snprintf(condition->op, sizeof(condition->op), "%.*s", (int)len, at);
    at = skip_spaces(at + len);
    return line_quoted(ctl->arena, &at, end, &condition->value) ? 3 : 2;
}

static int set_result(struct ctl *ctl, const char *line, const struct condition *condition,
                      struct pb_compare *compare)
{
    static const struct {
        const char *text;
        enum pb_compare_result result;
    } results[] = {
        {"=", PB_COMPARE_RESULT_EQUAL},
        {"!=", PB_COMPARE_RESULT_NOT_EQUAL},
        {">", PB_COMPARE_RESULT_GREATER},
        {"<", PB_COMPARE_RESULT_LESS},
    };
    for (size_t i = 0; i < COUNT_OF(results); i++) {
        if (strcmp(condition->op, results[i].text) == 0) {
            compare->result = (int32_t)results[i].result;
            return CTL_OK;
        }
    }
    return ctl_fail(ctl, CTL_INVALID_INPUT, "malformed comparison: %s (unknown operator %s)", line,
                    condition->op);
}

static const struct condition_target {
    const char *name, *short_name;
    enum pb_compare_target target;
    enum pb_compare_target_union_case which;
} targets[] = {
    {"version", "ver", PB_COMPARE_TARGET_VERSION, PB_COMPARE_VERSION},
    {"create", "c", PB_COMPARE_TARGET_CREATE, PB_COMPARE_CREATE_REVISION},
    {"mod", "m", PB_COMPARE_TARGET_MOD, PB_COMPARE_MOD_REVISION},
    {"value", "val", PB_COMPARE_TARGET_VALUE, PB_COMPARE_VALUE},
    {"lease", "lease", PB_COMPARE_TARGET_LEASE, PB_COMPARE_LEASE},
};

static const struct condition_target *find_target(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(targets); i++)
        if (strcmp(name, targets[i].name) == 0 || strcmp(name, targets[i].short_name) == 0)
            return &targets[i];
    return NULL;
}

/* All targets but the value are numbers, and share their place in the union. */
static int set_operand(struct ctl *ctl, const char *line, const struct condition *condition,
                       struct pb_compare *compare)
{
    const struct condition_target *target = find_target(condition->target);
    if (!target)
        return ctl_fail(ctl, CTL_INVALID_INPUT, "malformed comparison: %s (unknown target %s)",
                        line, condition->target);
    compare->target = (int32_t)target->target;
    compare->target_union_case = target->which;
    char reason[160];
    const char *text = (const char *)condition->value.ptr;
    if (target->which == PB_COMPARE_VALUE)
        compare->value = condition->value;
    else if (target->which == PB_COMPARE_LEASE
                 ? !kv_parse_lease(text, &compare->lease, reason, sizeof(reason))
                 : !kv_parse_number(text, &compare->version, reason, sizeof(reason)))
        return ctl_fail(ctl, CTL_INVALID_INPUT, "invalid txn compare request: %s", line);
    return CTL_OK;
}

/* Lines may contain zero bytes, and are followed by one. */
static int parse_compare(struct ctl *ctl, struct slice text, void *ret_compare)
{
    const char *line = (const char *)text.ptr;
    const char *bracket = strchr(line, '(');
    if (!bracket)
        return ctl_fail(ctl, CTL_INVALID_INPUT, "malformed comparison: %s", line);
    struct condition condition = {.key = SLICE_LITERAL(""), .value = SLICE_LITERAL("")};
    snprintf(condition.target, sizeof(condition.target), "%.*s", (int)(bracket - line), line);
    if (split_condition(ctl, bracket + 1, line + text.len, &condition) != 3) {
        fprintf(stderr, "Error: malformed comparison: %s; got %s(", line, condition.target);
        ctl_write_quoted(stderr, condition.key);
        fprintf(stderr, ") %s ", condition.op);
        ctl_write_quoted(stderr, condition.value);
        fputc('\n', stderr);
        return CTL_INVALID_INPUT;
    }
    struct pb_compare *compare = ret_compare;
    *compare = (struct pb_compare){.key = condition.key};
    int code = set_operand(ctl, line, &condition, compare);
    return code == CTL_OK ? set_result(ctl, line, &condition, compare) : code;
}

/* -- requests -- */

static const struct ctl_command *find_operation(const char *word)
{
    static const char *const names[] = {"get", "put", "del"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char *const args[] = {(char *)(uintptr_t)names[i]};
        /* The beginning of a name is enough, as in etcdctl: "g" is get. */
        if (*word && strncmp(names[i], word, strlen(word)) == 0)
            return ctl_find(1, args, CTL_VIGIL).command;
    }
    return NULL;
}

static int refuse_request(struct ctl *ctl, const char *line)
{
    return ctl_fail(ctl, CTL_INVALID_INPUT, "invalid txn request: %s", line);
}

static void *new (struct ctl *ctl, size_t bytes)
{
    return xalloc_check(arena_calloc(ctl->arena, 1, bytes), bytes);
}

static int make_request(struct ctl *line_ctl, struct pb_request_op *ret_op)
{
    if (line_ctl->command->run == get_run) {
        ret_op->request_case = PB_REQUEST_OP_REQUEST_RANGE;
        ret_op->request_range = new (line_ctl, sizeof(*ret_op->request_range));
        return get_request(line_ctl, ret_op->request_range);
    }
    if (line_ctl->command->run == put_run) {
        ret_op->request_case = PB_REQUEST_OP_REQUEST_PUT;
        ret_op->request_put = new (line_ctl, sizeof(*ret_op->request_put));
        return put_request(line_ctl, false, ret_op->request_put);
    }
    ret_op->request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE;
    ret_op->request_delete_range = new (line_ctl, sizeof(*ret_op->request_delete_range));
    return del_request(line_ctl, ret_op->request_delete_range);
}

/* The lengths of the words that are left after the flags were taken. */
static const size_t *lens_of(struct ctl *ctl, const struct line_words *split,
                             const struct option_words *left)
{
    size_t *lens = new (ctl, split->count * sizeof(*lens));
    for (size_t i = 0, at = 0; i < left->count; i++) {
        while (split->words[at] != left->words[i])
            at++;
        lens[i] = split->lens[at];
    }
    return lens;
}

static int parse_request(struct ctl *ctl, struct slice text, void *ret_op)
{
    const char *line = (const char *)text.ptr;
    struct line_words *split = new (ctl, sizeof(*split));
    if (!line_split(ctl->arena, text, split))
        return refuse_request(ctl, line);
    if (split->count < 2)
        return ctl_fail(ctl, CTL_INVALID_INPUT, "invalid txn compare request: %s", line);
    struct ctl line_ctl = *ctl;
    line_ctl.command = find_operation(split->words[0]);
    if (!line_ctl.command)
        return refuse_request(ctl, line);
    struct options *options = new (ctl, sizeof(*options));
    void *flags = new (ctl, line_ctl.command->flags_bytes);
    struct option_words words = {.words = new (ctl, split->count * sizeof(*words.words))};
    struct error error;
    options_init(options, ctl_own_table(line_ctl.command, ctl->style, ctl->arena), flags);
    if (options_parse_words(options, (int)split->count - 1,
                            (char *const *)(uintptr_t)(split->words + 1), &words, &error) != ST_OK)
        return refuse_request(ctl, line);
    line_ctl.flags = flags;
    line_ctl.given = options;
    line_ctl.words = words.words;
    line_ctl.word_lens = lens_of(ctl, split, &words);
    line_ctl.word_count = words.count;
    return make_request(&line_ctl, ret_op);
}

/* -- the transaction -- */

/* Items that are added one by one. */
struct items {
    char *memory; /* owned */
    size_t count, capacity, item_bytes;
};

static void *add_item(struct items *items)
{
    if (items->count == items->capacity) {
        items->capacity = size_max(16, items->capacity * 2);
        items->memory = xrealloc(items->memory, items->capacity * items->item_bytes);
    }
    void *item = items->memory + items->count++ * items->item_bytes;
    memset(item, 0, items->item_bytes);
    return item;
}

/* Reads lines up to an empty one. */
static int read_lines(struct ctl *ctl, struct items *items,
                      int (*parse)(struct ctl *ctl, struct slice line, void *ret_item))
{
    struct slice line;
    while (read_line(ctl, &line)) {
        if (line.len == 0)
            return CTL_OK;
        int code = parse(ctl, line, add_item(items));
        if (code != CTL_OK)
            return code;
    }
    return ctl_fail(ctl, CTL_INVALID_INPUT, "EOF");
}

static void prompt(struct ctl *ctl, const char *text)
{
    const struct txn_flags *given = ctl->flags;
    if (!given->interactive)
        return;
    fprintf(ctl->out, "%s\n", text);
    fflush(ctl->out);
}

static int read_transaction(struct ctl *ctl, struct items *compares, struct items *success,
                            struct items *failure)
{
    prompt(ctl, "compares:");
    int code = read_lines(ctl, compares, parse_compare);
    if (code != CTL_OK)
        return code;
    prompt(ctl, "success requests (get, put, del):");
    code = read_lines(ctl, success, parse_request);
    if (code != CTL_OK)
        return code;
    prompt(ctl, "failure requests (get, put, del):");
    return read_lines(ctl, failure, parse_request);
}

/* -- the answer -- */

static void show_simple(struct ctl *ctl, const void *response)
{
    const struct pb_txn_response *txn = response;
    fputs(txn->succeeded ? "SUCCESS\n" : "FAILURE\n", ctl->out);
    for (size_t i = 0; i < txn->responses_count; i++) {
        const struct pb_response_op *op = &txn->responses[i];
        fputc('\n', ctl->out);
        if (op->response_case == PB_RESPONSE_OP_RESPONSE_RANGE)
            ctl_range_shape.simple(ctl, op->response_range);
        else if (op->response_case == PB_RESPONSE_OP_RESPONSE_PUT)
            ctl_put_shape.simple(ctl, op->response_put);
        else if (op->response_case == PB_RESPONSE_OP_RESPONSE_DELETE_RANGE)
            ctl_del_shape.simple(ctl, op->response_delete_range);
    }
}

static void show_fields(struct ctl *ctl, const void *response)
{
    const struct pb_txn_response *txn = response;
    ctl_field_header(ctl, txn->header);
    ctl_field_bool(ctl, "Succeeded", txn->succeeded);
    for (size_t i = 0; i < txn->responses_count; i++) {
        const struct pb_response_op *op = &txn->responses[i];
        if (op->response_case == PB_RESPONSE_OP_RESPONSE_RANGE)
            ctl_range_shape.fields(ctl, op->response_range);
        else if (op->response_case == PB_RESPONSE_OP_RESPONSE_PUT)
            ctl_put_shape.fields(ctl, op->response_put);
        else if (op->response_case == PB_RESPONSE_OP_RESPONSE_DELETE_RANGE)
            ctl_del_shape.fields(ctl, op->response_delete_range);
    }
}

static const struct ctl_shape shape = {
    .type = &pb_txn_response_table,
    .simple = show_simple,
    .fields = show_fields,
};

int txn_run(struct ctl *ctl)
{
    struct items compares = {.item_bytes = sizeof(struct pb_compare)};
    struct items success = {.item_bytes = sizeof(struct pb_request_op)};
    struct items failure = {.item_bytes = sizeof(struct pb_request_op)};
    const void *response;
    int code;
    /* Flags and endpoints are checked before anything is read, as in etcdctl. */
    if (ctl_client(ctl, &code))
        code = read_transaction(ctl, &compares, &success, &failure);
    struct pb_txn_request request = {
        .compare = (void *)compares.memory,
        .compare_count = compares.count,
        .success = (void *)success.memory,
        .success_count = success.count,
        .failure = (void *)failure.memory,
        .failure_count = failure.count,
    };
    if (code == CTL_OK)
        code = ctl_call(ctl, METHOD_TXN, &request, &response);
    free(compares.memory);
    free(success.memory);
    free(failure.memory);
    return code == CTL_OK ? ctl_print(ctl, &shape, response) : code;
}
