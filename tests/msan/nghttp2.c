/* nghttp2, with which tests compare our HTTP/2, as the memory sanitizer has to see it: what it is
 * given must be defined, and what it returns or passes to callbacks is. */
#include <nghttp2/nghttp2.h>
#include <sanitizer/msan_interface.h>

/* Names that the linker makes from nghttp2's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name
#define NOT_INSTRUMENTED __attribute__((no_sanitize("memory")))

int REAL(nghttp2_hd_inflate_new)(nghttp2_hd_inflater **ret_inflater);
int WRAP(nghttp2_hd_inflate_new)(nghttp2_hd_inflater **ret_inflater);
int REAL(nghttp2_hd_deflate_new)(nghttp2_hd_deflater **ret_deflater, size_t table_bytes);
int WRAP(nghttp2_hd_deflate_new)(nghttp2_hd_deflater **ret_deflater, size_t table_bytes);
ssize_t REAL(nghttp2_hd_inflate_hd2)(nghttp2_hd_inflater *inflater, nghttp2_nv *ret_field,
                                     int *ret_flags, const uint8_t *in, size_t bytes, int final);
ssize_t WRAP(nghttp2_hd_inflate_hd2)(nghttp2_hd_inflater *inflater, nghttp2_nv *ret_field,
                                     int *ret_flags, const uint8_t *in, size_t bytes, int final);
ssize_t REAL(nghttp2_hd_deflate_hd)(nghttp2_hd_deflater *deflater, uint8_t *out, size_t bytes,
                                    const nghttp2_nv *fields, size_t count);
ssize_t WRAP(nghttp2_hd_deflate_hd)(nghttp2_hd_deflater *deflater, uint8_t *out, size_t bytes,
                                    const nghttp2_nv *fields, size_t count);
int REAL(nghttp2_session_callbacks_new)(nghttp2_session_callbacks **ret_calls);
int WRAP(nghttp2_session_callbacks_new)(nghttp2_session_callbacks **ret_calls);
void REAL(nghttp2_session_callbacks_set_on_frame_recv_callback)(
    nghttp2_session_callbacks *calls, nghttp2_on_frame_recv_callback callback);
void WRAP(nghttp2_session_callbacks_set_on_frame_recv_callback)(
    nghttp2_session_callbacks *calls, nghttp2_on_frame_recv_callback callback);
void REAL(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)(
    nghttp2_session_callbacks *calls, nghttp2_on_data_chunk_recv_callback callback);
void WRAP(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)(
    nghttp2_session_callbacks *calls, nghttp2_on_data_chunk_recv_callback callback);
int REAL(nghttp2_session_server_new)(nghttp2_session **ret_session,
                                     const nghttp2_session_callbacks *calls, void *user);
int WRAP(nghttp2_session_server_new)(nghttp2_session **ret_session,
                                     const nghttp2_session_callbacks *calls, void *user);
ssize_t REAL(nghttp2_session_mem_recv)(nghttp2_session *session, const uint8_t *in, size_t bytes);
ssize_t WRAP(nghttp2_session_mem_recv)(nghttp2_session *session, const uint8_t *in, size_t bytes);
ssize_t REAL(nghttp2_session_mem_send)(nghttp2_session *session, const uint8_t **ret_bytes);
ssize_t WRAP(nghttp2_session_mem_send)(nghttp2_session *session, const uint8_t **ret_bytes);

/* -- Header compression -- */

int WRAP(nghttp2_hd_inflate_new)(nghttp2_hd_inflater **ret_inflater)
{
    int code = REAL(nghttp2_hd_inflate_new)(ret_inflater);
    __msan_unpoison(ret_inflater, sizeof(*ret_inflater));
    return code;
}

int WRAP(nghttp2_hd_deflate_new)(nghttp2_hd_deflater **ret_deflater, size_t table_bytes)
{
    int code = REAL(nghttp2_hd_deflate_new)(ret_deflater, table_bytes);
    __msan_unpoison(ret_deflater, sizeof(*ret_deflater));
    return code;
}

ssize_t WRAP(nghttp2_hd_inflate_hd2)(nghttp2_hd_inflater *inflater, nghttp2_nv *ret_field,
                                     int *ret_flags, const uint8_t *in, size_t bytes, int final)
{
    __msan_check_mem_is_initialized(in, bytes);
    ssize_t n = REAL(nghttp2_hd_inflate_hd2)(inflater, ret_field, ret_flags, in, bytes, final);
    __msan_unpoison(ret_flags, sizeof(*ret_flags));
    if (n >= 0 && *ret_flags & NGHTTP2_HD_INFLATE_EMIT) {
        __msan_unpoison(ret_field, sizeof(*ret_field));
        /* nghttp2 ends both with a 0. */
        __msan_unpoison(ret_field->name, ret_field->namelen + 1);
        __msan_unpoison(ret_field->value, ret_field->valuelen + 1);
    }
    return n;
}

ssize_t WRAP(nghttp2_hd_deflate_hd)(nghttp2_hd_deflater *deflater, uint8_t *out, size_t bytes,
                                    const nghttp2_nv *fields, size_t count)
{
    ssize_t n = REAL(nghttp2_hd_deflate_hd)(deflater, out, bytes, fields, count);
    if (n > 0)
        __msan_unpoison(out, (size_t)n);
    return n;
}

/* -- Sessions -- */

static nghttp2_on_frame_recv_callback frame_callback;
static nghttp2_on_data_chunk_recv_callback chunk_callback;

NOT_INSTRUMENTED
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    __msan_unpoison(frame, sizeof(*frame));
    return frame_callback(session, frame, user);
}

NOT_INSTRUMENTED
static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                    size_t count, void *user)
{
    __msan_unpoison(bytes, count);
    return chunk_callback(session, flags, id, bytes, count, user);
}

int WRAP(nghttp2_session_callbacks_new)(nghttp2_session_callbacks **ret_calls)
{
    int code = REAL(nghttp2_session_callbacks_new)(ret_calls);
    __msan_unpoison(ret_calls, sizeof(*ret_calls));
    return code;
}

void WRAP(nghttp2_session_callbacks_set_on_frame_recv_callback)(
    nghttp2_session_callbacks *calls, nghttp2_on_frame_recv_callback callback)
{
    frame_callback = callback;
    REAL(nghttp2_session_callbacks_set_on_frame_recv_callback)(calls, on_frame);
}

void WRAP(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)(
    nghttp2_session_callbacks *calls, nghttp2_on_data_chunk_recv_callback callback)
{
    chunk_callback = callback;
    REAL(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)(calls, on_chunk);
}

int WRAP(nghttp2_session_server_new)(nghttp2_session **ret_session,
                                     const nghttp2_session_callbacks *calls, void *user)
{
    int code = REAL(nghttp2_session_server_new)(ret_session, calls, user);
    __msan_unpoison(ret_session, sizeof(*ret_session));
    return code;
}

ssize_t WRAP(nghttp2_session_mem_recv)(nghttp2_session *session, const uint8_t *in, size_t bytes)
{
    __msan_check_mem_is_initialized(in, bytes);
    return REAL(nghttp2_session_mem_recv)(session, in, bytes);
}

ssize_t WRAP(nghttp2_session_mem_send)(nghttp2_session *session, const uint8_t **ret_bytes)
{
    ssize_t n = REAL(nghttp2_session_mem_send)(session, ret_bytes);
    __msan_unpoison(ret_bytes, sizeof(*ret_bytes));
    if (n > 0)
        __msan_unpoison(*ret_bytes, (size_t)n);
    return n;
}
