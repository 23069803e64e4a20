//! The loops of the roles.
