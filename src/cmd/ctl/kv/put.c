/* put */
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/kv/kv.h"

#include "base/xalloc.h"

#include <errno.h>

/* -- numbers, with the errors of Go's strconv -- */

static bool parse(const char *text, int base, int64_t *ret_number, char *ret_reason, size_t bytes)
{
    const char *digits = text + (*text == '-' || *text == '+');
    size_t len = strspn(digits, base == 16 ? "0123456789abcdefABCDEF" : "0123456789");
    errno = 0;
    long long number = strtoll(text, NULL, base);
    bool valid = len && digits[len] == 0;
    if (valid && errno == 0) {
        *ret_number = number;
        return true;
    }
    snprintf(ret_reason, bytes, "strconv.ParseInt: parsing \"%.100s\": %s", text,
             valid ? "value out of range" : "invalid syntax");
    return false;
}

bool kv_parse_lease(const char *text, int64_t *ret_id, char *ret_reason, size_t bytes)
{
    return parse(text, 16, ret_id, ret_reason, bytes);
}

bool kv_parse_number(const char *text, int64_t *ret_number, char *ret_reason, size_t bytes)
{
    return parse(text, 10, ret_number, ret_reason, bytes);
}

/* -- the request -- */

enum { VALUE_BYTES_MAX = 1 << 30 };

/* Everything of standard input; empty: there is nothing, or too much. */
static struct slice read_input(struct ctl *ctl)
{
    AUTO(buf_fini) struct buf input = {0};
    if (terminal_is(stdin))
        ctl_hint(ctl,
                 "Type the value; Ctrl-D at the beginning of a line ends it. (A value may also "
                 "be the second word: vigil put KEY VALUE.)");
    while (input.len < VALUE_BYTES_MAX) {
        xalloc_check(buf_reserve(&input, 65536) == ST_OK ? input.ptr : NULL, 65536);
        size_t n = fread(input.ptr + input.len, 1, 65536, stdin);
        input.len += n;
        if (n == 0 || feof(stdin)) /* a terminal would have to end it twice */
            break;
    }
    struct slice value = {0};
    if (arena_dup(ctl->arena, buf_slice(&input), &value) != ST_OK)
        return (struct slice){0};
    return value;
}

static int refuse_count(struct ctl *ctl)
{
    return ctl_refuse(ctl, "put command needs 1 argument and input from stdin or 2 arguments");
}

static int set_value(struct ctl *ctl, bool reads_input, struct pb_put_request *request)
{
    const struct put_flags *given = ctl->flags;
    if (given->ignore_value)
        return ctl->word_count > 1 ? ctl_refuse(ctl, "put command needs only 1 argument when "
                                                     "'ignore-value' is set")
                                   : CTL_OK;
    if (ctl->word_count > 1) {
        request->value = ctl_word(ctl, 1);
        return CTL_OK;
    }
    if (reads_input)
        request->value = read_input(ctl);
    return request->value.len ? CTL_OK : refuse_count(ctl);
}

int put_request(struct ctl *ctl, bool reads_input, struct pb_put_request *ret_request)
{
    const struct put_flags *given = ctl->flags;
    if (ctl->word_count == 0)
        return refuse_count(ctl);
    *ret_request = (struct pb_put_request){
        .key = ctl_word(ctl, 0),
        .prev_kv = given->prev_kv,
        .ignore_value = given->ignore_value,
        .ignore_lease = given->ignore_lease,
    };
    char reason[160];
    int code = set_value(ctl, reads_input, ret_request);
    if (code == CTL_OK &&
        !kv_parse_lease(given->lease, &ret_request->lease, reason, sizeof(reason)))
        code = ctl_refuse(ctl, "bad lease ID (%s), expecting ID in Hex", reason);
    return code;
}

/* -- the answer -- */

static void show_simple(struct ctl *ctl, const void *response)
{
    const struct pb_put_response *put = response;
    fputs("OK\n", ctl->out);
    if (put->prev_kv)
        ctl_simple_kv(ctl, true, true, put->prev_kv);
}

static void show_fields(struct ctl *ctl, const void *response)
{
    const struct pb_put_response *put = response;
    ctl_field_header(ctl, put->header);
    if (put->prev_kv)
        ctl_field_kv(ctl, "Prev", put->prev_kv);
}

const struct ctl_shape ctl_put_shape = {
    .type = &pb_put_response_table,
    .simple = show_simple,
    .fields = show_fields,
};

int put_run(struct ctl *ctl)
{
    struct pb_put_request request;
    const void *response;
    int code = put_request(ctl, true, &request);
    if (code == CTL_OK)
        code = ctl_call(ctl, METHOD_PUT, &request, &response);
    return code == CTL_OK ? ctl_print(ctl, &ctl_put_shape, response) : code;
}
