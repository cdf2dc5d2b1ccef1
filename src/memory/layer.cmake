# The installed headers of the library.
target_include_directories(vigil_memory PUBLIC ${CMAKE_SOURCE_DIR}/include)

# Wrapped as a library is (cmake/library.cmake).
cmake_language(DEFER CALL target_link_options memory_wrap_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=aligned_alloc,--wrap=strdup)
