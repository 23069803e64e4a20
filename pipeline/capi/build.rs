//! Gives the shared library its name: without one, a program linked with the file by its path looks for that path when it starts.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblowlat_capi.so");
}
