# find_package(libvigil) defines the targets libvigil::libvigil, the shared library, and
# libvigil::static. Installed in PREFIX/lib/cmake/libvigil; the paths are relative to it.
get_filename_component(_libvigil_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET libvigil::libvigil)
    add_library(libvigil::libvigil SHARED IMPORTED)
    set_target_properties(libvigil::libvigil PROPERTIES
        IMPORTED_LOCATION "${_libvigil_prefix}/lib/libvigil.so.@version@"
        IMPORTED_SONAME libvigil.so.1
        INTERFACE_INCLUDE_DIRECTORIES "${_libvigil_prefix}/include")
    add_library(libvigil::static STATIC IMPORTED)
    set_target_properties(libvigil::static PROPERTIES
        IMPORTED_LOCATION "${_libvigil_prefix}/lib/libvigil.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_libvigil_prefix}/include"
        INTERFACE_LINK_LIBRARIES "ssl;crypto;resolv;-pthread")
endif()
unset(_libvigil_prefix)
