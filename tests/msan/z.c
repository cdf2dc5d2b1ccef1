/* zlib, as the memory sanitizer has to see it: its input must be defined, and its output is. */
#include <sanitizer/msan_interface.h>
#include <zlib.h>

/* Names that the linker makes from zlib's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

int REAL(deflate)(z_stream *z, int flush);
int WRAP(deflate)(z_stream *z, int flush);
int REAL(inflate)(z_stream *z, int flush);
int WRAP(inflate)(z_stream *z, int flush);
int REAL(deflateInit2_)(z_stream *z, int level, int method, int bits, int memory, int strategy,
                        const char *version, int bytes);
int WRAP(deflateInit2_)(z_stream *z, int level, int method, int bits, int memory, int strategy,
                        const char *version, int bytes);
int REAL(inflateInit2_)(z_stream *z, int bits, const char *version, int bytes);
int WRAP(inflateInit2_)(z_stream *z, int bits, const char *version, int bytes);

static int run(int (*step)(z_stream *z, int flush), z_stream *z, int flush)
{
    const Bytef *in = z->next_in, *out = z->next_out;
    int code = step(z, flush);
    __msan_unpoison(z, sizeof(*z));
    __msan_check_mem_is_initialized(in, (size_t)(z->next_in - in));
    __msan_unpoison(out, (size_t)(z->next_out - out));
    return code;
}

int WRAP(deflate)(z_stream *z, int flush)
{
    return run(REAL(deflate), z, flush);
}

int WRAP(inflate)(z_stream *z, int flush)
{
    return run(REAL(inflate), z, flush);
}

int WRAP(deflateInit2_)(z_stream *z, int level, int method, int bits, int memory, int strategy,
                        const char *version, int bytes)
{
    int code = REAL(deflateInit2_)(z, level, method, bits, memory, strategy, version, bytes);
    __msan_unpoison(z, sizeof(*z));
    return code;
}

int WRAP(inflateInit2_)(z_stream *z, int bits, const char *version, int bytes)
{
    int code = REAL(inflateInit2_)(z, bits, version, bytes);
    __msan_unpoison(z, sizeof(*z));
    return code;
}
