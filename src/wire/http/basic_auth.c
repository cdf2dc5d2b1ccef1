#include "wire/http/basic_auth.h"

#include "codec/base64.h"

enum status http_basic_auth_append(struct buf *to, const char *user, const char *password)
{
    AUTO(buf_fini) struct buf plain = {0};
    TRY(buf_append_format(&plain, "%s:%s", user, password));
    size_t len = base64_encoded_len(plain.len);
    TRY(buf_append_text(to, "Basic "));
    TRY(buf_reserve(to, len));
    base64_encode(buf_slice(&plain), to->ptr + to->len);
    to->len += len;
    return ST_OK;
}
