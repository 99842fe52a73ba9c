/* A host that knows nothing of the library when it is linked: plugin LIBRARY TABLE. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static int64_t count;

static bool add_up(const char *path, int64_t size) {
    (void)path, (void)size;
    count++;
    return true;
}

int main(int argument_count, char **words) {
    int code = argument_count == 3 ? 0 : 64;
    /* For itself alone, unloaded, and loaded again. */
    for (int i = 0; i < 2 && code == 0; i++) {
        void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        int (*scan)(const char *, const char *, size_t, bool (*)(const char *, int64_t));
        const char *(*error)(void);
        *(void **)&scan = dlsym(library, "delta_scan_lazy");
        *(void **)&error = dlsym(library, "delta_last_error");
        count = 0;
        code = scan(words[2], NULL, 0, add_up);
        printf("%lld%s\n", (long long)count, error());
        dlclose(library);
    }
    return code;
}
