# vigil_library(NAME LAYER): libNAME.so from a layer and what it uses of those below. Only the
# symbols of src/LAYER/libNAME.map are visible, and its memory functions can be replaced
# (src/client/allocator.c).
function(vigil_library name layer)
    set(map ${CMAKE_SOURCE_DIR}/src/${layer}/lib${name}.map)
    get_target_property(uses vigil_${layer} LINK_LIBRARIES)
    # A library needs a source of its own.
    file(CONFIGURE OUTPUT generated/nothing.c CONTENT "")
    add_library(lib${name} SHARED ${CMAKE_BINARY_DIR}/generated/nothing.c)
    target_include_directories(lib${name} INTERFACE ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(lib${name} PRIVATE -Wl,--whole-archive vigil_${layer}
                          -Wl,--no-whole-archive ${uses} ssl crypto)
    target_link_options(lib${name} PRIVATE -Wl,--version-script=${map} -Wl,--as-needed
                        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
                        -Wl,--wrap=aligned_alloc,--wrap=strdup)
    set_target_properties(lib${name} PROPERTIES OUTPUT_NAME ${name} VERSION 1.0.0 SOVERSION 1
                          LINK_DEPENDS ${map})
endfunction()

# vigil_suite(PROGRAM LIBRARY FOLDER): the tests in C of an installed library, which a script in the
# same folder runs with servers.
function(vigil_suite program library folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
    add_executable(${program} ${sources})
    target_link_libraries(${program} PRIVATE ${library})
endfunction()
