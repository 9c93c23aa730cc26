//! Which keys are chosen, and which mistakes are named.

use super::super::Style;
use super::*;

const CREDENTIALS: &str = "
# a comment
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key=secret/of+default  # mine
[work]
aws_access_key_id=AKWORK
aws_secret_access_key = s3cr3t
aws_session_token = tok=en==
[half]
aws_access_key_id = AKHALF
";

const CONFIG: &str = "
[default]
region = eu-central-1
[profile work]
region = us-west-2
endpoint_url = https://other.example
s3 =
    addressing_style = path
    endpoint_url = http://minio.example:9000
output = json
[profile \"by service\"]
services = mine
region = x
[services mine]
s3 =
  endpoint_url = https://services.example
[profile sso]
sso_session = corp
";

fn variables(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn chosen(all: &[(&str, &str)], profile: Option<&str>) -> Result<Account, BadCredentials> {
    let given = Given { credentials: Some(CREDENTIALS), config: Some(CONFIG), profile };
    Account::choose(&variables(all), given)
}

fn key(account: &Account) -> Option<&str> {
    account.credentials.as_ref().map(|keys| keys.access_key.as_str())
}

#[test]
fn variables_go_before_files_and_a_named_profile_before_both() {
    let keys = [("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "e"), ("AWS_PROFILE", "work")];
    let account = chosen(&keys, None).expect("keys");
    assert_eq!((key(&account), account.region.as_deref()), (Some("AKENV"), Some("us-west-2")));
    assert_eq!(key(&chosen(&keys, Some("default")).expect("keys")), Some("AKDEFAULT"));
    assert_eq!(key(&chosen(&[], None).expect("keys")), Some("AKDEFAULT"));
    let empty = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", " ")];
    assert_eq!(key(&chosen(&empty, None).expect("keys")), Some("AKDEFAULT"), "empty is not set");
}

#[test]
fn a_profile_is_read_from_both_files() {
    let account = chosen(&[("AWS_PROFILE", "work")], None).expect("keys");
    let keys = Credentials::new("AKWORK", "s3cr3t", Some("tok=en=="));
    let want = Account {
        credentials: Some(keys),
        region: Some("us-west-2".to_owned()),
        endpoint: Some("http://minio.example:9000".to_owned()),
        style: Some(Style::Path),
    };
    assert_eq!(account, want);
    let default = chosen(&[], None).expect("keys").credentials.expect("keys");
    assert_eq!(default.secret.expose(), "secret/of+default");
    let endpoint = |vars: &[(&str, &str)]| chosen(vars, Some("by service")).expect("a profile").endpoint;
    assert_eq!(endpoint(&[]).as_deref(), Some("https://services.example"));
    assert_eq!(endpoint(&[("AWS_ENDPOINT_URL", "http://e")]).as_deref(), Some("http://e"));
    let both = [("AWS_ENDPOINT_URL", "http://e"), ("AWS_ENDPOINT_URL_S3", "http://s3")];
    assert_eq!(endpoint(&both).as_deref(), Some("http://s3"));
}

#[test]
fn regions_of_the_environment() {
    let region = |vars: &[(&str, &str)]| chosen(vars, None).expect("keys").region;
    assert_eq!(region(&[]).as_deref(), Some("eu-central-1"));
    assert_eq!(region(&[("AWS_DEFAULT_REGION", "b")]).as_deref(), Some("b"));
    assert_eq!(region(&[("AWS_DEFAULT_REGION", "b"), ("AWS_REGION", "a")]).as_deref(), Some("a"));
}

#[test]
fn mistakes_are_named() {
    let half = chosen(&[("AWS_ACCESS_KEY_ID", "A")], None);
    assert_eq!(half.unwrap_err().to_string(), "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not");
    let half = chosen(&[], Some("half")).unwrap_err().to_string();
    assert_eq!(half, "the profile \"half\" has aws_access_key_id and no aws_secret_access_key");
    assert_eq!(chosen(&[], Some("none")).unwrap_err(), BadCredentials::NoProfile("none".to_owned()));
    let sso = chosen(&[], Some("sso")).unwrap_err();
    assert!(matches!(sso, BadCredentials::OtherWay { way: "sso_session", .. }), "{sso}");
    let odd = [("AWS_ACCESS_KEY_ID", "A\nB"), ("AWS_SECRET_ACCESS_KEY", "s")];
    assert!(matches!(chosen(&odd, None), Err(BadCredentials::NoKey(_))));
    let long = "x".repeat(2 << 20);
    let given = Given { credentials: Some(&long), ..Given::default() };
    assert_eq!(Account::choose(&BTreeMap::new(), given), Err(BadCredentials::TooLarge("credentials")));
    assert_eq!(Account::choose(&BTreeMap::new(), Given::default()), Ok(Account::default()));
}

#[test]
fn where_the_files_are() {
    let home = |vars: &[(&str, &str)]| files(&variables(vars), "/home/u");
    let usual = ("/home/u/.aws/credentials".to_owned(), "/home/u/.aws/config".to_owned());
    assert_eq!(home(&[]), usual);
    let named = [("AWS_SHARED_CREDENTIALS_FILE", "~/c"), ("AWS_CONFIG_FILE", "/etc/c")];
    assert_eq!(home(&named), ("/home/u/c".to_owned(), "/etc/c".to_owned()));
}

#[test]
fn secrets_are_not_shown() {
    let keys = Credentials::new("AK", "hidden", Some("hidden"));
    assert!(!format!("{keys:?} {} {:?}", keys.secret, chosen(&[], None)).contains("hidden"));
    assert!(!format!("{:?}", chosen(&[], None)).contains("secret/of"));
}
