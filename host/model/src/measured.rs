//! Measurements of documents.

/// Declares the measurement of a kind: a record with the word and the command of its kind.
#[macro_export]
macro_rules! measurement {
    ($(#[$doc:meta])* $name:ident { record: $record:ty, kind: $kind:literal, command: $command:literal }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        pub struct $name {
            pub record: $record,
        }

        impl $name {
            /// The measurement's kind in a document.
            pub const KIND: &str = $kind;
            /// The subcommand that writes it.
            pub const COMMAND: &str = $command;
        }

        impl From<$record> for $name {
            fn from(record: $record) -> Self {
                Self { record }
            }
        }
    };
}
