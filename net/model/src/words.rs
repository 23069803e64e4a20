//! Enums whose variants are words of arguments and documents, and the measurements of documents.

/// Declares an enum of words: variant, its word in arguments and documents.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its word in arguments and documents.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// The variant with this word.
            pub fn of_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

/// Declares a measurement of a document: its record, its kind, and the subcommand that writes it.
macro_rules! measurement {
    ($(#[$doc:meta])* $name:ident { record: $record:ty, kind: $kind:literal, command: $command:literal }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
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

pub(crate) use {measurement, words};

/// The text with a capital letter at its start.
pub fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    first + characters.as_str()
}
