#include "client/http/token_file.h"

#include "io/whole_file.h"
#include "wire/http/http1/parser.h"

static struct slice without_space(struct slice s)
{
    static const char space[] = " \t\r\n\v\f";
    while (s.len && s.ptr[0] && strchr(space, s.ptr[0]))
        s = slice_sub(s, 1, s.len - 1);
    while (s.len && s.ptr[s.len - 1] && strchr(space, s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static enum status read_token(const char *path, struct buf *to, struct error *error)
{
    TRY(whole_file_read(path, WHOLE_FILE_REGULAR, TOKEN_FILE_BYTES_MAX, to, error));
    struct slice token = without_space(buf_slice(to));
    if (!token.len)
        return error_set(error, ST_MALFORMED, "%.300s: there is no token in the file", path);
    if (!http1_is_field_value(token))
        return error_set(error, ST_MALFORMED, "%.300s: the token contains line ends or zeros",
                         path);
    memmove(to->ptr, token.ptr, token.len);
    to->len = token.len;
    return ST_OK;
}

static void plan(struct token_file *file, int64_t now_ns, bool was_read)
{
    file->read_ns = now_ns;
    file->due_ns = now_ns + (was_read ? TOKEN_FILE_VALID_NS : TOKEN_FILE_PAUSE_NS);
}

enum status token_file_init(struct token_file *file, const char *path, const char *first,
                            int64_t now_ns, struct error *error)
{
    struct token_file made = {.path = path};
    enum status status = read_token(path, &made.token, error);
    plan(&made, now_ns, status == ST_OK);
    if (status != ST_OK && first) {
        made.token.len = 0;
        status = buf_append_text(&made.token, first);
        if (status != ST_OK)
            error_set(error, status, "out of memory");
    }
    if (status == ST_OK)
        *file = made;
    else
        buf_fini(&made.token);
    return status;
}

void token_file_fini(struct token_file *file)
{
    buf_fini(&file->token);
}

bool token_file_refresh(struct token_file *file, int64_t now_ns)
{
    AUTO(buf_fini) struct buf found = {0};
    struct error error;
    if (now_ns < file->due_ns)
        return false;
    bool was_read = read_token(file->path, &found, &error) == ST_OK;
    plan(file, now_ns, was_read);
    if (!was_read || slice_equal(buf_slice(&found), buf_slice(&file->token)))
        return false;
    struct buf old = file->token;
    file->token = found;
    found = old;
    return true;
}

void token_file_expire(struct token_file *file)
{
    int64_t soon_ns = file->read_ns + TOKEN_FILE_PAUSE_NS;
    if (file->due_ns > soon_ns)
        file->due_ns = soon_ns;
}
